// Additions that read nothing (R83).
#include <gtest/gtest.h>

#include <functional>

#include "engine/mastertree/descent.h"
#include "tests/engine/install/add_rules.h"

namespace atolldb::test {
namespace {

TEST(Additions, AnswerLikeAMapWhileSnapshotsAreInstalled) {
  EXPECT_EQ(adds_answer_like_a_map(8), "");
}
#ifndef ATOLL_STRESS

TEST(Additions, AreSummedByReaders) { EXPECT_EQ(pending_adds_are_summed(), ""); }
TEST(Additions, AreSummedByScans) { EXPECT_EQ(scans_find_pending_adds(), ""); }
TEST(Additions, CountOnceIfTheSnapshotHasThem) { EXPECT_EQ(adds_of_the_snapshot_count_once(), ""); }
TEST(Additions, AreSeenByTheirTransaction) { EXPECT_EQ(own_adds_are_seen(), ""); }
TEST(Additions, NoticeOtherWrites) { EXPECT_EQ(adds_notice_other_writes(), ""); }

/// The number of snapshot pages that worker 1 has read.
uint64_t reads_of(AddTree& test) { return test.warm.cluster.metrics(0, 1).snapshot_reads.get(); }

TEST(Additions, ReadNoPageOfTheSnapshot) {
  AddTree test;
  ASSERT_EQ(test.prepare_window(), "");
  const uint64_t before = reads_of(test);
  for (uint64_t key = 1; key < 256; ++key) ASSERT_EQ(test.add(1, key, 3), Status::ok);
  EXPECT_EQ(reads_of(test), before);
  ASSERT_EQ(test.add(1, 5, 3), Status::ok) << "a second addition needs the sum";
  EXPECT_EQ(reads_of(test), before + 1);
  ASSERT_EQ(test.add(1, 5, 3), Status::ok) << "and the third one finds it in memory";
  EXPECT_EQ(reads_of(test), before + 1);
  ASSERT_EQ(test.add(1, 256, 3), Status::ok) << "other keys may share the slice of this one";
  EXPECT_GT(reads_of(test), before + 1);
  EXPECT_EQ(test.delta_records(), 256u);
}

/// What increments and inserts read: an increment reads the record, because its result depends on
/// it. An insert reads the page that would have the key, because its result is its absence.
TEST(Additions, AreTheOnlyWritesOfPartsThatReadNothing) {
  AddTree test;
  ASSERT_EQ(test.prepare_window(), "");
  const uint64_t before = reads_of(test);
  const int64_t one = 1;
  EXPECT_EQ(test.warm.cluster.worker(1).run([&](Transaction& txn) {
    return test.tree.increment(txn, bytes_of(big_endian(5)), 0, IncrementType::i64, &one);
  }),
            Status::out_of_range);
  EXPECT_GT(reads_of(test), before);
}

/// Device reads of writes to a cold tree whose cache is empty: none for additions and upserts.
/// Inserts after the last key read one page, the last one. Inserts between other keys read the page
/// that would have the key.
TEST(BlindWrites, ReadTheDeviceOnlyForWhatTheyReturn) {
  AddTree test;
  ASSERT_EQ(test.prepare_window(), "");
  const auto misses = [&] { return test.warm.cache().statistics().misses; };
  const auto insert = [&](uint64_t key) {
    return test.warm.cluster.worker(1).run([&](Transaction& txn) {
      return test.tree.insert(txn, bytes_of(big_endian(key)), bytes_of("new"));
    });
  };
  uint64_t before = misses();
  for (uint64_t key = 1; key < 256; ++key) {
    ASSERT_EQ(key % 2 == 0 ? test.add(1, key, 3) : test.write_blindly(1, key), Status::ok);
  }
  EXPECT_EQ(misses(), before);
  before = misses();
  for (uint64_t key = 2'000; key < 2'500; ++key) ASSERT_EQ(insert(key), Status::ok);
  EXPECT_EQ(misses(), before + 1);
  before = misses();
  ASSERT_EQ(insert(700), Status::already_exists);
  EXPECT_EQ(misses(), before + 1);
  EXPECT_EQ(insert(701), Status::already_exists) << "a neighbour";
  EXPECT_EQ(misses(), before + 1);
}

TEST(Additions, ReadWhileAnEarlierChangeIsNear) {
  AddTree test;
  ASSERT_EQ(test.prepare(), "");
  AddWindow window;
  EXPECT_FALSE(window.is_open(3, 1'000));
  EXPECT_FALSE(window.is_open(3, 1'000 + kAddDistanceEpochs - 1));
  EXPECT_TRUE(window.is_open(3, 1'000 + kAddDistanceEpochs));
  EXPECT_FALSE(window.is_open(4, 1'000 + kAddDistanceEpochs)) << "a newer snapshot";
  EXPECT_TRUE(window.is_open(3, 1'000 + kAddDistanceEpochs)) << "an older page";
  EXPECT_TRUE(window.is_open(4, 1'000 + 2 * kAddDistanceEpochs));
}

/// Damages the snapshot page of a record. Returns false if that fails.
bool damage_page_of(AddTree& test, uint64_t key) {
  SnapshotPointer page;
  const Status found = test.warm.cluster.worker(0).run([&](Transaction& txn) {
    const std::string name = big_endian(key);
    const Location cold = locate(txn.worker(), test.warm.storage, bytes_of(name));
    page = cold.missing.view.snapshot;
    return cold.record == nullptr ? Status::ok : Status::user_abort;
  });
  return found == Status::ok && test.warm.stage.power_cut()
                                    .corrupt(test.warm.stage.path(page.node(), page.snapshot()),
                                             page.page() * kPageBytes + 1000, 1)
                                    .has_value();
}

/// A write that reads nothing does not notice that the page of its record is damaged. What needs
/// the page ends with snapshot_unreadable, and no write is lost.
TEST(BlindWrites, SucceedWhereTheSnapshotCannotBeRead) {
  AddTree test;
  ASSERT_EQ(test.prepare_window(), "");
  ASSERT_TRUE(damage_page_of(test, 5));
  const auto run = [&](const std::function<Status(Transaction&)>& body) {
    return test.warm.cluster.worker(1).run(body);
  };
  const auto upsert = [&](uint64_t key) {
    return run([&](Transaction& txn) {
      return test.tree.upsert(txn, bytes_of(big_endian(key)), bytes_of("mine"));
    });
  };
  EXPECT_EQ(test.value_of(5), to_string(Status::snapshot_unreadable));
  EXPECT_EQ(upsert(5), Status::ok);
  EXPECT_EQ(test.value_of(5), "mine") << "the whole record is in the delta tree";
  EXPECT_EQ(test.write(1, 5, "new"), Status::ok) << "so it can be changed, too";
  EXPECT_EQ(test.erase(1, 5), Status::ok);
  EXPECT_EQ(test.value_of(5), to_string(Status::not_found));
  // What depends on the snapshot's record.
  EXPECT_EQ(test.write(1, 6, "new"), Status::snapshot_unreadable);
  EXPECT_EQ(test.erase(1, 6), Status::snapshot_unreadable);
  EXPECT_EQ(run([&](Transaction& txn) {
              return test.tree.insert(txn, bytes_of(big_endian(6)), bytes_of("new"));
            }),
            Status::snapshot_unreadable);
  EXPECT_EQ(test.scan(4, 9), to_string(Status::snapshot_unreadable));
  EXPECT_EQ(test.scan(4, 9, false), to_string(Status::snapshot_unreadable));
  EXPECT_EQ(upsert(0), Status::snapshot_unreadable) << "other keys may share the slice of this one";
  // An addition waits for its record. A second one cannot be summed, and the first one stays.
  EXPECT_EQ(test.add(1, 7, 3), Status::ok);
  EXPECT_EQ(test.value_of(7), to_string(Status::snapshot_unreadable));
  EXPECT_EQ(test.add(1, 7, 3), Status::snapshot_unreadable);
  EXPECT_EQ(upsert(7), Status::ok);
  EXPECT_EQ(test.value_of(7), "mine") << "a blind write replaces it";
  // An own write that reads nothing is seen by its transaction.
  EXPECT_EQ(run([&](Transaction& txn) {
              Status status = test.tree.upsert(txn, bytes_of(big_endian(8)), bytes_of("mine"));
              std::string value;
              if (status == Status::ok) status = ColdTree::read(txn, test.tree, 8, value);
              EXPECT_EQ(value, "mine");
              return status;
            }),
            Status::ok);
  EXPECT_EQ(test.value_of(900), "old") << "other pages can be read";
}

TEST(Additions, HaveLimits) {
  AddTree test;
  ASSERT_EQ(test.prepare_window(), "");
  constexpr uint32_t kLast = MasterTree::kMaxPayloadBytes - 8;
  EXPECT_EQ(test.add(1, 5, 1, kLast), Status::ok);
  EXPECT_EQ(test.warm.cluster.worker(0).run([&](Transaction& txn) {
    int64_t number = 0;
    uint32_t bytes = 0;
    const Status status = test.tree.get(txn, bytes_of(big_endian(5)), nullptr, 0, bytes);
    EXPECT_EQ(bytes, MasterTree::kMaxPayloadBytes);
    if (status != Status::ok) return status;
    const Status read =
        test.tree.get_range(txn, bytes_of(big_endian(5)), kLast, sizeof number, &number);
    EXPECT_EQ(number, 1);
    return read;
  }),
            Status::ok);
  EXPECT_EQ(test.add(1, 6, 1, kLast + 1), Status::payload_too_long);
  const std::string longest(MasterTree::kMaxKeyBytes, 'k');
  const std::string longer = longest + 'k';
  const int64_t one = 1;
  const auto add = [&](const std::string& key, IncrementType type) {
    return test.warm.cluster.worker(1).run(
        [&](Transaction& txn) { return test.tree.add(txn, bytes_of(key), 0, type, &one); });
  };
  EXPECT_EQ(add(longest, IncrementType::i64), Status::ok);
  EXPECT_EQ(add(longer, IncrementType::i64), Status::key_too_long);
  EXPECT_EQ(add("k", IncrementType::none), Status::invalid_argument);
  EXPECT_EQ(add("k", static_cast<IncrementType>(6)), Status::invalid_argument);
  for (const auto type : {IncrementType::i32, IncrementType::u32, IncrementType::u64}) {
    EXPECT_EQ(add("k", type), Status::ok);
  }
}

#endif

}  // namespace
}  // namespace atolldb::test
