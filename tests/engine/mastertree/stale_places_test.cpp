// Records that move while a transaction refers to them. Splits by the transaction itself and by
// others happen between two uses of one RecordRef (R14). Writes find a smaller record than planned.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "engine/mastertree/cursor.h"
#include "engine/mastertree/inspect.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/engine/transaction/answer_rules.h"

namespace atolldb::test {
namespace {

/// A tree in which key 500 holds "aaaaaaaa", with a way to split its page during a transaction.
class StalePlaces : public testing::Test {
 protected:
  void SetUp() override {
    stage_.commit_alone([&](Transaction& txn) {
      return tree_.insert(txn, ordered_key(500), bytes_of("aaaaaaaa"));
    });
  }
  void split(Transaction& txn) {
    const uint64_t before = stage_.cluster().metrics(0, 0).splits.get();
    for (uint64_t key = 1000; key < 1200; ++key) {
      ASSERT_EQ(tree_.insert(txn, ordered_key(key), bytes_of("xxxxxxxx")), Status::ok);
    }
    ASSERT_GT(stage_.cluster().metrics(0, 0).splits.get(), before);
  }
  std::string value() {
    std::string text(8, '?');
    uint32_t bytes = 0;
    stage_.commit_alone(
        [&](Transaction& txn) { return tree_.get(txn, ordered_key(500), text.data(), 8, bytes); });
    return text;
  }

  Stage stage_;
  MasterTree tree_{stage_.empty_tree("moving")};
};

TEST_F(StalePlaces, ByKeyThenByRefIsOneWrite) {
  Transaction& a = stage_.a();
  std::array<char, 8> text{};
  uint32_t bytes = 0;
  RecordRef ref;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(tree_.get_for_update(a, ordered_key(500), text.data(), 8, bytes, ref), Status::ok);
  split(a);
  ASSERT_EQ(tree_.update_range(a, ordered_key(500), 0, bytes_of("1")), Status::ok);
  ASSERT_EQ(tree_.update_range(a, ref, ordered_key(500), 1, bytes_of("2")), Status::ok);
  ASSERT_EQ(a.commit(), Status::ok);
  EXPECT_EQ(value(), "12aaaaaa");
}

TEST_F(StalePlaces, ByRefThenByKeyThenByRefIsOneWrite) {
  Transaction& a = stage_.a();
  std::array<char, 8> text{};
  uint32_t bytes = 0;
  RecordRef ref;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(tree_.get_for_update(a, ordered_key(500), text.data(), 8, bytes, ref), Status::ok);
  ASSERT_EQ(tree_.update_range(a, ref, ordered_key(500), 0, bytes_of("1")), Status::ok);
  split(a);
  ASSERT_EQ(tree_.get(a, ordered_key(500), text.data(), 8, bytes), Status::ok);
  EXPECT_EQ(std::string(text.data(), 8), "1aaaaaaa");
  ASSERT_EQ(tree_.update_range(a, ref, ordered_key(500), 7, bytes_of("8")), Status::ok);
  ASSERT_EQ(a.commit(), Status::ok);
  EXPECT_EQ(value(), "1aaaaaa8");
}

TEST_F(StalePlaces, ACursorSeesTheOwnWriteAfterTheRecordHasMoved) {
  Transaction& a = stage_.a();
  std::array<char, 8> text{};
  uint32_t bytes = 0;
  ASSERT_EQ(a.begin(), Status::ok);
  MasterTreeCursor cursor(tree_, a, ScanRange{}, true);
  ASSERT_EQ(cursor.next(), Status::ok);
  ASSERT_EQ(tree_.update_range(a, cursor.ref(), cursor.key(), 0, bytes_of("ZZ")), Status::ok);
  split(a);
  ASSERT_EQ(tree_.get(a, ordered_key(500), text.data(), 8, bytes), Status::ok);
  ASSERT_EQ(cursor.get(text.data(), 8), Status::ok);
  EXPECT_EQ(std::string(text.data(), 8), "ZZaaaaaa");
  ASSERT_EQ(a.commit(), Status::ok);
  EXPECT_EQ(value(), "ZZaaaaaa");
}

TEST_F(StalePlaces, AnIncrementIsReadAndChangedThroughAnOldRef) {
  const uint64_t zero = 0;
  stage_.commit_alone([&](Transaction& txn) {
    return tree_.update(txn, ordered_key(500), bytes_view(&zero, sizeof(zero)));
  });
  Transaction& a = stage_.a();
  uint64_t number = 0;
  uint32_t bytes = 0;
  RecordRef ref;
  const uint64_t delta = 5;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(tree_.get_for_update(a, ordered_key(500), &number, 8, bytes, ref), Status::ok);
  ASSERT_EQ(tree_.increment(a, ordered_key(500), 0, IncrementType::u64, &delta), Status::ok);
  split(a);
  const uint8_t low_byte = 7;
  ASSERT_EQ(tree_.update_range(a, ref, ordered_key(500), 7, bytes_view(&low_byte, 1)), Status::ok);
  ASSERT_EQ(a.commit(), Status::ok);
  EXPECT_EQ(stage_.cluster().worker(1).run([&](Transaction& txn) {
    return tree_.get(txn, ordered_key(500), &number, 8, bytes);
  }),
            Status::ok);
  EXPECT_EQ(number, (uint64_t{7} << 56) + 5);
}

TEST(ElidedWrites, AreNotMissedByLookUps) {
  EXPECT_EQ(look_up_of_an_own_write_that_was_elided(), "");
}

TEST(ElidedWrites, EndTheAttemptOfAScanThatHasMissedThem) {
  EXPECT_EQ(scan_of_an_own_write_that_was_elided(false), "");
  EXPECT_EQ(scan_of_an_own_write_that_was_elided(true), "");
}

/// The eraser's epoch is older than the begin of the blind writer. Therefore a split may elide the
/// tombstone while the writer still runs. Then the key is inserted again with less space.
TEST(StaleSizes, ABlindWriteDoesNotOverrunARecordThatWasMadeAgainSmaller) {
  TestClusterOptions options{.clock = false};
  options.pool_bytes = uint64_t{16} << 20;
  TestCluster cluster(1, 3, options);
  const MasterTree tree(cluster.create("tree", StorageType::mastertree, 8));
  const auto run = [&](uint32_t worker, auto&& body) {
    ASSERT_EQ(cluster.worker(worker).run(body), Status::ok);
  };
  std::atomic<uint64_t>& epoch = cluster.view().control->epochs.current;
  for (int i = 0; i < 20; ++i) cluster.tick();
  const std::string large(1000, 'o');
  run(1, [&](Transaction& txn) { return tree.insert(txn, ordered_key(100), bytes_of(large)); });
  cluster.worker(1).context->leave();
  for (int i = 0; i < 5; ++i) cluster.tick();

  Transaction& writer = *cluster.worker(0).transaction;
  ASSERT_EQ(writer.begin(), Status::ok);
  ASSERT_EQ(tree.upsert(writer, ordered_key(100), bytes_of(large)), Status::ok);
  const uint64_t now = epoch.load(std::memory_order_relaxed);
  epoch.store(now - 1, std::memory_order_seq_cst);
  run(1, [&](Transaction& txn) { return tree.erase(txn, ordered_key(100)); });
  cluster.worker(1).context->leave();
  epoch.store(now, std::memory_order_seq_cst);
  cluster.tick();
  cluster.tick();
  for (uint64_t key = 101; key < 251; ++key) {
    run(2,
        [&](Transaction& txn) { return tree.insert(txn, ordered_key(key), bytes_of("12345678")); });
  }
  run(2, [&](Transaction& txn) { return tree.insert(txn, ordered_key(100), bytes_of("k")); });

  EXPECT_EQ(writer.commit(), Status::write_conflict);
  TreeStatistics statistics;
  EXPECT_EQ(check_tree(cluster.view(), tree.storage(), statistics), "");
}

}  // namespace
}  // namespace atolldb::test
