// Statuses at and past every limit of a transaction and of its operations.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {
namespace {

TestClusterOptions small_sets() {
  return {.limits = {.read_set = 40,
                     .write_set = 30,
                     .pointer_set = 3,
                     .page_version_set = 3,
                     .log_buffer = 16384},
          .clock = false};
}

/// Calls `operation(i)` for i = 0, 1 ... until it aborts. Returns the number of successful calls.
template <typename Operation>
uint64_t count_until_too_large(Transaction& txn, Operation&& operation) {
  EXPECT_EQ(txn.begin(), Status::ok);
  Status status = Status::ok;
  uint64_t done = 0;
  for (; done < 100'000; ++done) {
    status = operation(done);
    if (is_abort(status)) break;
  }
  EXPECT_EQ(status, Status::transaction_too_large);
  txn.rollback(status);
  return done;
}

TEST(Limits, TheReadSetTakesExactlyItsCapacity) {
  Stage stage(small_sets());
  uint64_t value = 0;
  EXPECT_EQ(count_until_too_large(
                stage.a(), [&](uint64_t i) { return stage.array().get(stage.a(), i, value); }),
            40);
}

TEST(Limits, TheWriteSetTakesExactlyItsCapacity) {
  Stage stage(small_sets());
  EXPECT_EQ(count_until_too_large(stage.a(),
                                  [&](uint64_t i) { return stage.array().put(stage.a(), i, 1); }),
            30);
}

TEST(Limits, ManyWritesOfOneRecordAreOneEntry) {
  Stage stage(small_sets());
  ASSERT_EQ(stage.a().begin(), Status::ok);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(stage.array().add(stage.a(), 10, 1), Status::ok);
  ASSERT_EQ(stage.a().commit(), Status::ok);
  EXPECT_EQ(stage.value_of(Kind::array, 10), 1010);
}

TEST(Limits, ThePointerSetTakesExactlyItsCapacity) {
  Stage stage(small_sets());
  std::vector<Table> empty;
  for (int i = 0; i < 5; ++i) {
    empty.emplace_back(Kind::tree, stage.empty_tree("empty" + std::to_string(i)));
  }
  uint64_t value = 0;
  EXPECT_EQ(count_until_too_large(
                stage.a(), [&](uint64_t i) { return empty[i % 5].get(stage.a(), i, value); }),
            3);
}

TEST(Limits, ThePageVersionSetTakesExactlyItsCapacity) {
  Stage stage(small_sets());
  std::vector<Table> trees;
  for (int i = 0; i < 5; ++i) {
    trees.emplace_back(Kind::tree, stage.empty_tree("tree" + std::to_string(i)));
    stage.commit_alone([&](Transaction& b) { return trees.back().insert(b, 1, 1); });
  }
  uint64_t value = 0;
  EXPECT_EQ(count_until_too_large(
                stage.a(), [&](uint64_t i) { return trees[i % 5].get(stage.a(), 7, value); }),
            3);
}

/// The splits of an attempt stay after its abort, and the next attempt would split again. A retry
/// would never help.
TEST(Limits, APageVersionSetThatIsFullAtASplitIsNotTriedAgain) {
  Stage stage({.limits = {.page_version_set = 3}, .clock = false});
  std::vector<Table> trees;
  for (int i = 0; i < 3; ++i) {
    trees.emplace_back(Kind::tree, stage.empty_tree("tree" + std::to_string(i)));
    stage.commit_alone([&](Transaction& b) { return trees.back().insert(b, 1, 1); });
  }
  uint64_t next = 1000;
  int attempts = 0;
  const Status status = stage.cluster().worker(0).run([&](Transaction& txn) -> Status {
    if (++attempts > 20) return Status::procedure_failed;
    uint64_t value = 0;
    for (const Table& tree : trees) {
      const Status looked = tree.get(txn, 999'999, value);
      if (is_abort(looked)) return looked;
    }
    for (int i = 0; i < 400; ++i) {
      const Status inserted = trees[2].insert(txn, next++, 1);
      if (inserted != Status::ok) return inserted;
    }
    return Status::ok;
  });
  EXPECT_EQ(status, Status::transaction_too_large);
  EXPECT_EQ(attempts, 1);
}

/// Once a set is full, the reads of the attempt cannot be verified. The outcome must not depend on
/// how the procedure handles the failed call.
TEST(Limits, AnAttemptWithAFullSetNeitherCommitsNorReportsAUserAbort) {
  Stage stage(small_sets());
  for (const bool commits : {true, false}) {
    Transaction& a = stage.a();
    ASSERT_EQ(a.begin(), Status::ok);
    uint64_t value = 0;
    Status status = Status::ok;
    for (uint64_t i = 0; i < 41; ++i) status = stage.array().get(a, i, value);
    ASSERT_EQ(status, Status::transaction_too_large);
    EXPECT_EQ(commits ? a.commit() : a.commit_user_abort(), Status::transaction_too_large);
    EXPECT_FALSE(a.is_active());
  }
}

TEST(Limits, OnePointerIsOneEntry) {
  Stage stage(small_sets());
  StorageControl& storage =
      stage.cluster().create("unwritten", StorageType::array, 8, 5000);  // more than three pages
  const Status status = stage.cluster().worker(0).run([&](Transaction& txn) {
    ArrayCursor cursor(Array(storage), txn, 0, 4999, true);
    uint64_t index = 0;
    uint64_t value = 0;
    Status next = Status::ok;
    while (next == Status::ok) next = cursor.next(index, &value);
    return next == Status::end_of_scan ? Status::ok : next;
  });
  EXPECT_EQ(status, Status::ok);
}

TEST(Limits, TheLogBufferIsBounded) {
  Stage stage(small_sets());
  const std::vector<std::byte> payload(2000);
  const uint64_t done = count_until_too_large(stage.a(), [&](uint64_t i) {
    return stage.tree().tree().upsert(stage.a(), ordered_key(1000 + i), payload);
  });
  EXPECT_GE(done, 3);
  EXPECT_LE(done, 4);
}

TEST(Limits, ATransactionThatWasTooLargeLeavesNothingBehind) {
  Stage stage(small_sets());
  count_until_too_large(stage.a(), [&](uint64_t i) { return stage.array().put(stage.a(), i, 99); });
  EXPECT_EQ(stage.value_of(Kind::array, 10), 10);
  ASSERT_EQ(stage.a().begin(), Status::ok);
  ASSERT_EQ(stage.array().put(stage.a(), 10, 5), Status::ok);
  ASSERT_EQ(stage.a().commit(), Status::ok);
  EXPECT_EQ(stage.value_of(Kind::array, 10), 5);
}

TEST(Limits, EveryCallFailsFromTheDeadlineOn) {
  Stage stage;
  Transaction& a = stage.a();
  const uint64_t now = a.worker().current_epoch();
  uint64_t value = 0;
  ASSERT_EQ(a.begin(now + 1), Status::ok);
  ASSERT_EQ(stage.tree().get(a, 10, value), Status::ok);
  stage.ticks(1);
  EXPECT_EQ(stage.tree().get(a, 10, value), Status::deadline_exceeded);
  EXPECT_EQ(stage.array().get(a, 10, value), Status::deadline_exceeded);
  EXPECT_EQ(stage.array().put(a, 10, value), Status::deadline_exceeded);
  EXPECT_EQ(stage.tree().insert(a, 11, value), Status::deadline_exceeded);
  EXPECT_EQ(stage.tree().erase(a, 10), Status::deadline_exceeded);
  EXPECT_EQ(stage.tree().add(a, 10, 1), Status::deadline_exceeded);
  EXPECT_EQ(stage.tree().scan(a, 0, 100, true, value), Status::deadline_exceeded);
  a.rollback(Status::deadline_exceeded);
}

TEST(Limits, RunGivesUpAtTheDeadline) {
  Stage stage;
  TestWorker& worker = stage.cluster().worker(0);
  const uint64_t now = worker.context->current_epoch();
  int attempts = 0;
  const Status status = run(*worker.transaction, worker.backoff, now + 3, [&](Transaction& txn) {
    ++attempts;
    stage.ticks(1);
    return txn.check() == Status::ok ? Status::read_conflict : Status::deadline_exceeded;
  });
  EXPECT_EQ(status, Status::deadline_exceeded);
  EXPECT_EQ(attempts, 3);
}

TEST(Limits, KeysAndPayloadsAtAndPastTheirLimits) {
  Stage stage;
  const MasterTree tree = stage.tree().tree();
  std::vector<std::byte> key(MasterTree::kMaxKeyBytes + 1, std::byte{'k'});
  std::vector<std::byte> payload(MasterTree::kMaxPayloadBytes + 1, std::byte{'p'});
  const Bytes long_key(key);
  const Bytes last_key = long_key.first(MasterTree::kMaxKeyBytes);
  const Bytes long_payload(payload);
  const Bytes last_payload = long_payload.first(MasterTree::kMaxPayloadBytes);
  std::vector<std::byte> out(MasterTree::kMaxPayloadBytes);
  uint32_t bytes = 0;
  ASSERT_EQ(stage.a().begin(), Status::ok);
  Transaction& a = stage.a();
  EXPECT_EQ(tree.insert(a, long_key, {}), Status::key_too_long);
  EXPECT_EQ(tree.upsert(a, long_key, {}), Status::key_too_long);
  EXPECT_EQ(tree.update(a, long_key, {}), Status::key_too_long);
  EXPECT_EQ(tree.erase(a, long_key), Status::key_too_long);
  EXPECT_EQ(tree.get(a, long_key, out.data(), 8, bytes), Status::key_too_long);
  EXPECT_EQ(tree.insert(a, last_key, long_payload), Status::payload_too_long);
  EXPECT_EQ(tree.upsert(a, last_key, long_payload), Status::payload_too_long);
  EXPECT_EQ(tree.insert(a, last_key, last_payload), Status::ok);
  EXPECT_EQ(tree.update(a, last_key, long_payload), Status::payload_too_long);
  EXPECT_EQ(tree.insert(a, {}, {}), Status::ok) << "the empty key is a key";
  ASSERT_EQ(a.commit(), Status::ok);

  ASSERT_EQ(a.begin(), Status::ok);
  EXPECT_EQ(tree.get(a, last_key, out.data(), MasterTree::kMaxPayloadBytes, bytes), Status::ok);
  EXPECT_EQ(bytes, MasterTree::kMaxPayloadBytes);
  EXPECT_EQ(out.back(), std::byte{'p'});
  EXPECT_EQ(tree.get_range(a, last_key, MasterTree::kMaxPayloadBytes - 1, 1, out.data()),
            Status::ok);
  EXPECT_EQ(tree.get_range(a, last_key, MasterTree::kMaxPayloadBytes, 1, out.data()),
            Status::out_of_range);
  EXPECT_EQ(tree.update_range(a, last_key, MasterTree::kMaxPayloadBytes - 1, Bytes(key).first(2)),
            Status::out_of_range);
  EXPECT_EQ(tree.get(a, {}, out.data(), 8, bytes), Status::ok);
  EXPECT_EQ(bytes, 0);
  EXPECT_EQ(a.commit(), Status::ok);
}

TEST(Limits, ArrayIndexesAndOffsetsAtAndPastTheEnd) {
  Stage stage;
  const Table& array = stage.array();
  Transaction& a = stage.a();
  uint64_t value = 0;
  ASSERT_EQ(a.begin(), Status::ok);
  EXPECT_EQ(array.get(a, Stage::kKeys - 1, value), Status::ok);
  EXPECT_EQ(array.get(a, Stage::kKeys, value), Status::out_of_range);
  EXPECT_EQ(array.put(a, Stage::kKeys, value), Status::out_of_range);
  EXPECT_EQ(array.add(a, Stage::kKeys, value), Status::out_of_range);
  EXPECT_EQ(array.get(a, ~uint64_t{0}, value), Status::out_of_range);
  EXPECT_EQ(a.commit(), Status::ok);
}

TEST(Limits, EpochsNearTheHorizonOf36BitsOrderAsOthersDo) {
  Stage stage({.start_epoch = kMaxEpoch - 40, .clock = false});
  Vid last = stage.vid_of(Kind::tree, 10);
  for (int i = 0; i < 30; ++i) {
    stage.ticks(1);
    stage.put_alone(Kind::tree, 10, static_cast<uint64_t>(i));
    const Vid now = stage.vid_of(Kind::tree, 10);
    EXPECT_GT(now.version(), last.version());
    EXPECT_EQ(now.epoch(), stage.a().worker().current_epoch());
    last = now;
  }
  EXPECT_GT(last.epoch(), kMaxEpoch - 15);
}

// A job has looked up an array by name. Then the array was dropped, and a tree got its catalog
// slot.
TEST(Limits, AHandleOfAnArrayWhoseSlotIsAnothersIsUnusable) {
  Stage stage;
  const Array array(stage.tree().storage());
  Transaction& a = stage.a();
  uint64_t value = 0;
  uint64_t index = 0;
  ASSERT_EQ(a.begin(), Status::ok);
  EXPECT_EQ(array.get(a, 0, &value), Status::storage_not_found);
  EXPECT_EQ(array.get(a, 0, 0, sizeof(value), &value), Status::storage_not_found);
  EXPECT_EQ(array.update(a, 0, 0, sizeof(value), &value), Status::storage_not_found);
  EXPECT_EQ(array.increment(a, 0, 0, IncrementType::u64, &value), Status::storage_not_found);
  EXPECT_EQ(array.get_many(a, {&index, 1}, &value), Status::storage_not_found);
  EXPECT_EQ(ArrayCursor(array, a, 0, 5, true).next(index, &value), Status::storage_not_found);
  a.rollback(Status::user_abort);
}

}  // namespace
}  // namespace atolldb::test
