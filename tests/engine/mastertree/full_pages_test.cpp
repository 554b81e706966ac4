// Records so large that a page holds only a few. Each operation succeeds, perhaps with a split, or
// is refused.
#include <gtest/gtest.h>

#include <string>

#include "engine/array/array.h"
#include "engine/mastertree/inspect.h"
#include "engine/mastertree/mastertree.h"
#include "tests/engine/mastertree/oracle.h"

namespace atolldb::test {
namespace {

class FullPages : public testing::Test {
 protected:
  FullPages() : cluster_(1, 1, options()) {}
  static TestClusterOptions options() {
    TestClusterOptions options{.clock = false};
    options.pool_bytes = uint64_t{16} << 20;
    return options;
  }
  template <typename Body>
  Status run(Body&& body) {
    return cluster_.worker(0).run(body);
  }
  void check(const MasterTree& tree) {
    TreeStatistics statistics;
    EXPECT_EQ(check_tree(cluster_.view(), tree.storage(), statistics), "");
  }
  TestCluster cluster_;
};

/// A reserved record that was never inserted occupies space until it is old enough to be elided.
TEST(FullPagesInTime, AnAbortedInsertDoesNotMakeAnotherKeyTooLong) {
  TestCluster cluster(1, 1);
  const MasterTree tree(cluster.create("slice", StorageType::mastertree, 8));
  TestWorker& worker = cluster.worker(0);
  ASSERT_EQ(worker.run([&](Transaction& txn) {
    const Status status = tree.insert(txn, bytes_of("abcdefgh"), bytes_of(std::string(2048, 'a')));
    return status == Status::ok ? Status::user_abort : status;
  }),
            Status::user_abort);
  const std::string beside = "abcdefgh" + std::string(200, 'k');
  EXPECT_EQ(worker.run([&](Transaction& txn) {
    return tree.insert(txn, bytes_of(beside), bytes_of(std::string(1800, 'b')));
  }),
            Status::ok);
}

/// An insert may revive a tombstone with a longer payload. Such a tombstone is kept, so no wait
/// makes space for the longer record.
TEST_F(FullPages, ADeadRecordThatCannotGrowIsTooLong) {
  const MasterTree tree(cluster_.create("slice", StorageType::mastertree, 8));
  const std::string one("abc", 3);  // keys of one slice, which differ only in trailing zeros
  const std::string two("abc\0", 4);
  const std::string three("abc\0\0", 5);
  ASSERT_EQ(run([&](Transaction& txn) {
              Status status = tree.insert(txn, bytes_of(one), bytes_of(std::string(2000, 'a')));
              if (status == Status::ok)
                status = tree.insert(txn, bytes_of(two), bytes_of("12345678"));
              return status == Status::ok ? tree.insert(txn, bytes_of(three), bytes_of("12345678"))
                                          : status;
            }),
            Status::ok);
  ASSERT_EQ(run([&](Transaction& txn) { return tree.erase(txn, bytes_of(three)); }), Status::ok);
  EXPECT_EQ(run([&](Transaction& txn) {
              return tree.upsert(txn, bytes_of(three), bytes_of(std::string(2000, 'x')));
            }),
            Status::payload_too_long);
}

/// The enlarged record does not fit in one page with either neighbour.
TEST_F(FullPages, ARecordGrowsBetweenLargeOnes) {
  const MasterTree tree(cluster_.create("tree", StorageType::mastertree, 1896));
  ASSERT_EQ(run([&](Transaction& txn) {
              for (const auto& [key, bytes] : {std::pair{1, 1896}, {3, 1896}, {2, 8}}) {
                const Status status =
                    tree.insert(txn, ordered_key(static_cast<uint64_t>(key)),
                                bytes_of(std::string(static_cast<size_t>(bytes), 'a')));
                if (status != Status::ok) return status;
              }
              return Status::ok;
            }),
            Status::ok);
  const std::string large(MasterTree::kMaxPayloadBytes, 'B');
  ASSERT_EQ(
      run([&](Transaction& txn) { return tree.update(txn, ordered_key(2), bytes_of(large)); }),
      Status::ok);
  std::string read(large.size(), '?');
  uint32_t bytes = 0;
  ASSERT_EQ(run([&](Transaction& txn) {
              return tree.get(txn, ordered_key(2), read.data(), static_cast<uint32_t>(read.size()),
                              bytes);
            }),
            Status::ok);
  EXPECT_EQ(read, large);
  check(tree);
}

/// Two keys of one slice must share a page, whatever their sizes. The second payload takes all
/// sizes around the limit.
TEST_F(FullPages, TwoRecordsOfOneSliceFitOrAreRefused) {
  const uint64_t free_before = cluster_.pool(0).free_count();
  for (uint32_t size = 1600; size <= 1720; size += 8) {
    const MasterTree tree(
        cluster_.create("tree" + std::to_string(size), StorageType::mastertree, 8));
    ASSERT_EQ(run([&](Transaction& txn) {
                return tree.insert(txn, bytes_of("abcdefgh"), bytes_of(std::string(2048, 'a')));
              }),
              Status::ok);
    const Status second = run([&](Transaction& txn) {
      return tree.insert(txn, bytes_of("abcdefgh" + std::string(200, 'k')),
                         bytes_of(std::string(size, 'b')));
    });
    // Each record has a head of 24 bytes and a slot of 10 bytes. The second key has a suffix of 200
    // bytes. The page has a head of 136 bytes.
    const bool fits = 2 * 34 + 2048 + 200 + size <= kPageBytes - 136;
    EXPECT_EQ(second, fits ? Status::ok : Status::payload_too_long) << size;
    check(tree);
  }
  EXPECT_GT(cluster_.pool(0).free_count() + 200, free_before) << "the pool was drained";
}

/// Whether two large records of one slice fit in a page depends on the order. A long key that comes
/// second stays beside the short key, because only two long keys make a layer. A long key that
/// comes first moves to a layer.
TEST_F(FullPages, ALongKeyFitsBeforeALargeShortKeyOfItsSliceAndNotAfterIt) {
  const std::string shorter = "abcdefgh";
  const std::string longer = shorter + std::string(200, 'k');
  const std::string large(MasterTree::kMaxPayloadBytes, 'L');
  const auto insert = [&](const MasterTree& tree, const std::string& key) {
    return run([&](Transaction& txn) { return tree.insert(txn, bytes_of(key), bytes_of(large)); });
  };
  const MasterTree short_first(cluster_.create("short_first", StorageType::mastertree, 8));
  ASSERT_EQ(insert(short_first, shorter), Status::ok);
  EXPECT_EQ(insert(short_first, longer), Status::payload_too_long);
  check(short_first);
  const MasterTree long_first(cluster_.create("long_first", StorageType::mastertree, 8));
  ASSERT_EQ(insert(long_first, longer), Status::ok);
  EXPECT_EQ(insert(long_first, shorter), Status::ok);
  check(long_first);
}

/// A key that is longer than its slice moves to a layer of its own, if the other keys of the slice
/// need its room.
TEST_F(FullPages, ALongerKeyMakesRoomForTheOthersOfItsSlice) {
  const MasterTree tree(cluster_.create("tree", StorageType::mastertree, 8));
  const std::string longer = "abcdefgh" + std::string(200, 'k');
  const std::string large(2048, 'L');
  ASSERT_EQ(run([&](Transaction& txn) {
              const Status status = tree.insert(txn, bytes_of("abcdefgh"), bytes_of("small"));
              return status == Status::ok ? tree.insert(txn, bytes_of(longer), bytes_of(large))
                                          : status;
            }),
            Status::ok);
  const std::string other(2048, 'O');
  ASSERT_EQ(run([&](Transaction& txn) {
              return tree.update(txn, bytes_of("abcdefgh"), bytes_of(other));
            }),
            Status::ok);
  for (const auto& [key, value] : {std::pair{longer, large}, {std::string("abcdefgh"), other}}) {
    std::string read(value.size(), '?');
    uint32_t bytes = 0;
    ASSERT_EQ(run([&](Transaction& txn) {
                return tree.get(txn, bytes_of(key), read.data(), static_cast<uint32_t>(read.size()),
                                bytes);
              }),
              Status::ok);
    EXPECT_EQ(read, value);
  }
  check(tree);
}

TEST_F(FullPages, OffsetsThatWrapAreOutOfRange) {
  const MasterTree tree(cluster_.create("tree", StorageType::mastertree, 8));
  ASSERT_EQ(run([&](Transaction& txn) {
              return tree.insert(txn, ordered_key(1), bytes_of(std::string(8, '\0')));
            }),
            Status::ok);
  Transaction& txn = *cluster_.worker(0).transaction;
  const int32_t delta = 1;
  const uint32_t wraps = ~uint32_t{0} - 3;
  ASSERT_EQ(txn.begin(), Status::ok);
  EXPECT_EQ(tree.increment(txn, ordered_key(1), wraps, IncrementType::i32, &delta),
            Status::out_of_range);
  EXPECT_EQ(tree.increment(txn, ordered_key(1), 0, IncrementType::i32, &delta), Status::ok);
  EXPECT_EQ(tree.increment(txn, ordered_key(1), wraps, IncrementType::i32, &delta),
            Status::out_of_range);
  int64_t value = 0;
  ASSERT_EQ(tree.insert(txn, ordered_key(2), bytes_of(std::string(8, 'x'))), Status::ok);
  EXPECT_EQ(tree.get_range(txn, ordered_key(2), wraps, 8, &value), Status::out_of_range);
  EXPECT_EQ(txn.commit(), Status::ok);
}

TEST_F(FullPages, ARefPastTheEndOfAnArrayIsOutOfRange) {
  const Array array(cluster_.create("array", StorageType::array, 8, 100));
  Transaction& txn = *cluster_.worker(0).transaction;
  const std::array<uint64_t, 2> indexes = {99, 100};
  std::array<RecordRef, 2> refs;
  uint64_t value = 7;
  ASSERT_EQ(txn.begin(), Status::ok);
  ASSERT_EQ(array.find_many(txn, indexes, refs), Status::ok);
  EXPECT_EQ(array.get(txn, refs[0], 0, 8, &value), Status::ok);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(array.update(txn, refs[0], 99, 0, 8, &value), Status::invalid_argument)
      << "there is no page to write to";
  EXPECT_EQ(array.get(txn, refs[1], 0, 8, &value), Status::out_of_range);
  txn.rollback(Status::user_abort);
  ASSERT_EQ(txn.begin(), Status::ok);
  ASSERT_EQ(array.find_many_for_update(txn, indexes, refs), Status::ok);
  value = 7;
  EXPECT_EQ(array.update(txn, refs[0], 99, 0, 8, &value), Status::ok);
  EXPECT_EQ(array.update(txn, refs[1], 100, 0, 8, &value), Status::out_of_range);
  EXPECT_EQ(txn.commit(), Status::ok);
  EXPECT_EQ(run([&](Transaction& reader) { return array.get(reader, 99, &value); }), Status::ok);
  EXPECT_EQ(value, 7);
}

TEST_F(FullPages, APassedDeadlineLeavesTheTransactionFree) {
  Transaction& txn = *cluster_.worker(0).transaction;
  const uint64_t now = cluster_.worker(0).context->current_epoch();
  EXPECT_EQ(atolldb::run(txn, cluster_.worker(0).backoff, now + 1,
                         [&](Transaction&) {
                           cluster_.tick();
                           return Status::read_conflict;
                         }),
            Status::deadline_exceeded);
  EXPECT_FALSE(txn.is_active());
  EXPECT_EQ(run([](Transaction&) { return Status::ok; }), Status::ok);
}

}  // namespace
}  // namespace atolldb::test
