// Scans over cold pages read the next pages together: up to the end of the scan, or as far as a
// distance that grows with the scan (ScanAhead).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/format/array_page.h"
#include "tests/engine/snapshot/cold_storages.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kNoLimit = ~uint64_t{0};

/// What a scan has read.
struct ScanTrace {
  std::vector<SnapshotPointer> pages;  // its border pages, in the order of the scan
  std::vector<uint64_t> firsts;        // for each of them: number of the first record
  uint64_t records = 0;
  uint64_t ahead = 0;  // pages that it read before it reached them
  uint64_t waits = 0;  // times that it waited for the device, if no pages of a batch are adjacent
  Status end = Status::ok;
};

/// A tree in snapshots only. Neighbouring border pages are in different files, as after several
/// incremental snapshots. The keys are the numbers of the records.
class ScatteredTree {
 public:
  static constexpr uint64_t kRecords = 3'000;

  ScatteredTree() {
    std::vector<uint64_t> every;
    for (uint64_t i = 0; i < kRecords; ++i) every.push_back(i);
    take(every);
    const std::vector<uint64_t> firsts = all().firsts;
    constexpr size_t kFiles = 4;
    for (size_t file = 0; file < kFiles; ++file) {
      std::vector<uint64_t> changed;
      for (size_t page = file; page < firsts.size(); page += kFiles) {
        changed.push_back(firsts[page]);
      }
      take(changed);
    }
    pages = all();
    CHECK(pages.records == kRecords);
  }

  /// A cluster with an empty cache of this size.
  std::unique_ptr<ColdCluster> cluster(uint32_t frames) {
    return std::make_unique<ColdCluster>(stage_, 1, true, frames);
  }

  /// Scans at most `most` records in a transaction, and checks their keys.
  static ScanTrace scan(ColdCluster& cold, const ScanRange& range, bool forward = true,
                        uint64_t most = kNoLimit, Isolation isolation = Isolation::serializable) {
    ScanTrace trace;
    const Counter& ahead = cold.cluster.metrics(0, 0).scan_pages_ahead;
    const uint64_t ahead_before = ahead.get();
    const uint64_t misses_before = cold.cache().statistics().misses;
    TransactionMode mode;
    mode.isolation = isolation;
    Transaction& txn = *cold.cluster.worker(0).transaction;
    EXPECT_EQ(txn.begin(kMaxEpoch, mode), Status::ok);
    MasterTreeCursor cursor(MasterTree(cold.storage), txn, range, forward);
    uint64_t number = 0;
    while (trace.records < most && (trace.end = cursor.next()) == Status::ok) {
      const uint64_t before = number;
      number = slice_of(cursor.key());
      const bool is_next = number == (forward ? before + 1 : before - 1);
      EXPECT_TRUE(trace.records == 0 || is_next) << before << ", then " << number;
      const SnapshotPointer page = cursor.ref().snapshot();
      if (trace.pages.empty() || trace.pages.back() != page) {
        trace.pages.push_back(page);
        trace.firsts.push_back(number);
      }
      ++trace.records;
    }
    const bool is_good = trace.end == Status::ok || trace.end == Status::end_of_scan;
    if (is_good) {
      EXPECT_EQ(txn.commit(), Status::ok);
    } else {
      txn.rollback(trace.end);
    }
    trace.ahead = ahead.get() - ahead_before;
    trace.waits = cold.cache().statistics().misses - misses_before - trace.ahead;
    return trace;
  }

  static bool is_cached(ColdCluster& cold, SnapshotPointer page) {
    const std::vector<uint64_t> names = cold.cache().cached_pages(kRecords);
    return std::ranges::find(names, page.word()) != names.end();
  }

  bool damage(SnapshotPointer page) {
    return stage_.power_cut()
        .corrupt(stage_.path(page.node(), page.snapshot()), page.page() * kPageBytes + 1000, 1)
        .has_value();
  }

  ScanTrace pages;  // trace of a scan of everything

 private:
  /// Takes a snapshot that contains these records, which have changed.
  void take(const std::vector<uint64_t>& records) {
    const auto cold = cluster(16);
    std::vector<GleanedLog> logs;
    for (const uint64_t i : records) {
      logs.push_back({LogType::insert, big_endian(i), 0, std::string(200, '.'),
                      Vid::make(cold->next_epoch(), 1)});
    }
    CHECK(cold->take(std::move(logs)).empty());
  }
  ScanTrace all() { return scan(*cluster(16), {}); }

  SnapshotStage stage_{StorageType::mastertree};
};

TEST(ScanAheadTest, PagesThatAreScatteredInTheFilesAreReadInFewBatches) {
  ScatteredTree tree;
  const std::vector<SnapshotPointer>& names = tree.pages.pages;
  ASSERT_GT(names.size(), 100u);
  size_t in_one_file = 0;
  for (size_t i = 1; i < names.size(); ++i) {
    in_one_file += names[i].snapshot() == names[i - 1].snapshot() ? 1 : 0;
  }
  ASSERT_LE(in_one_file, 2u) << "neighbours are in different files";
  for (const Isolation isolation :
       {Isolation::serializable, Isolation::snapshot, Isolation::snapshot_read_only}) {
    for (const bool forward : {true, false}) {
      for (const uint32_t frames : {64u, 1'000u}) {
        const auto cold = tree.cluster(frames);
        const ScanTrace trace = ScatteredTree::scan(*cold, {}, forward, kNoLimit, isolation);
        EXPECT_EQ(trace.records, ScatteredTree::kRecords);
        EXPECT_EQ(trace.pages.size(), names.size());
        EXPECT_LT(6 * trace.waits, names.size()) << (forward ? "forward" : "backward");
      }
    }
  }
}

TEST(ScanAheadTest, AScanReadsNoPageBeyondANearBound) {
  ScatteredTree tree;
  constexpr size_t kFirst = 20;
  const std::string low = big_endian(tree.pages.firsts[kFirst]);
  for (const size_t count : {1u, 2u, 3u, 8u, 15u}) {
    const uint64_t end = tree.pages.firsts[kFirst + count];
    // The page at this fence could have a key without the zero bytes at the end of the bound.
    if (end % 256 == 0) continue;
    const std::string fence = big_endian(end);
    const std::string last = big_endian(end - 1);
    const SnapshotPointer before = tree.pages.pages[kFirst - 1];
    const SnapshotPointer after = tree.pages.pages[kFirst + count];
    ScanRange range{.low = bytes_of(low), .has_low = true, .high = bytes_of(fence)};
    range.has_high = true;
    {
      const auto cold = tree.cluster(1'000);
      const ScanTrace trace = ScatteredTree::scan(*cold, range);
      EXPECT_EQ(trace.pages.size(), count);
      EXPECT_EQ(trace.ahead, count - 1) << "all pages of the scan are read together";
      EXPECT_LE(trace.waits, 3u) << "the root, its child, and the batch";
      EXPECT_FALSE(ScatteredTree::is_cached(*cold, after)) << count;
    }
    range.high_inclusive = true;
    {
      const auto cold = tree.cluster(1'000);
      const ScanTrace trace = ScatteredTree::scan(*cold, range);
      EXPECT_EQ(trace.pages.size(), count + 1);
      EXPECT_EQ(trace.records, end + 1 - tree.pages.firsts[kFirst]);
    }
    range.high = bytes_of(last);
    {
      const auto cold = tree.cluster(1'000);
      const ScanTrace trace = ScatteredTree::scan(*cold, range, false);
      EXPECT_EQ(trace.pages.size(), count);
      EXPECT_EQ(trace.ahead, count - 1) << "backward";
      EXPECT_FALSE(ScatteredTree::is_cached(*cold, before)) << count;
    }
  }
}

TEST(ScanAheadTest, AShortScanWithoutABoundReadsFewPagesThatItDoesNotNeed) {
  ScatteredTree tree;
  constexpr size_t kFirst = 20;
  const std::string low = big_endian(tree.pages.firsts[kFirst]);
  for (size_t count = 1; count <= 12; ++count) {
    const auto cold = tree.cluster(1'000);
    const uint64_t records = tree.pages.firsts[kFirst + count - 1] + 1 - tree.pages.firsts[kFirst];
    const ScanTrace trace =
        ScatteredTree::scan(*cold, {.low = bytes_of(low), .has_low = true}, true, records);
    ASSERT_EQ(trace.pages.size(), count);
    uint64_t read = 0;
    for (size_t page = kFirst; page < kFirst + 60; ++page) {
      read += ScatteredTree::is_cached(*cold, tree.pages.pages[page]) ? 1 : 0;
    }
    EXPECT_LE(read - count, scan_distance(static_cast<uint32_t>(count) - 1)) << count << " pages";
    EXPECT_TRUE(count > 1 || trace.ahead == 1) << trace.ahead;
  }
}

TEST(ScanAheadTest, AScanOfCachedPagesReadsNothingAhead) {
  ScatteredTree tree;
  const auto cold = tree.cluster(1'000);
  EXPECT_GT(ScatteredTree::scan(*cold, {}).ahead, 0u);
  const ScanTrace again = ScatteredTree::scan(*cold, {});
  EXPECT_EQ(again.records, ScatteredTree::kRecords);
  EXPECT_EQ(again.ahead, 0u);
  EXPECT_EQ(again.waits, 0u);
}

/// A cache of few frames permits only small batches, or none.
TEST(ScanAheadTest, AScanNeedsFewFrames) {
  ScatteredTree tree;
  for (const uint32_t frames : {4u, 8u, 16u}) {
    for (const bool forward : {true, false}) {
      const auto cold = tree.cluster(frames);
      const ScanTrace trace = ScatteredTree::scan(*cold, {}, forward);
      EXPECT_EQ(trace.records, ScatteredTree::kRecords) << frames << " frames";
      EXPECT_EQ(trace.ahead != 0, frames >= 8) << frames << " frames";
    }
  }
}

TEST(ScanAheadTest, ADamagedPageAheadEndsTheScanWhenItIsReached) {
  ScatteredTree tree;
  constexpr size_t kFirst = 20;
  const std::string low = big_endian(tree.pages.firsts[kFirst]);
  const std::string high = big_endian(tree.pages.firsts[kFirst + 8] - 1);
  ASSERT_TRUE(tree.damage(tree.pages.pages[kFirst + 5]));
  const auto cold = tree.cluster(1'000);
  const ScanTrace trace = ScatteredTree::scan(*cold, {.low = bytes_of(low),
                                                      .has_low = true,
                                                      .high = bytes_of(high),
                                                      .has_high = true,
                                                      .high_inclusive = true});
  EXPECT_EQ(trace.end, Status::snapshot_unreadable);
  EXPECT_EQ(trace.records, tree.pages.firsts[kFirst + 5] - tree.pages.firsts[kFirst]);
  EXPECT_EQ(trace.ahead, 6u) << "the pages after the damaged one are good";
}

/// An array in snapshots only. Neighbouring leaves are in different files.
class ScatteredArray {
 public:
  static constexpr uint64_t kRecords = 3'000;
  static constexpr uint32_t kPayload = 200;

  explicit ScatteredArray(uint64_t records = kRecords)
      : records_(records),
        shape_{records, kPayload},
        stage_{StorageType::array, records, kPayload} {
    constexpr uint64_t kFiles = 4;
    take(0, 1);
    for (uint64_t file = 0; file < kFiles; ++file) take(file, kFiles);
  }

  uint64_t per_leaf() const { return shape_.records_per_leaf; }
  uint64_t leaves() const { return (records_ + per_leaf() - 1) / per_leaf(); }

  /// Damages the interior page of this number in the level above the leaves. REQUIRES: the root is
  /// one level higher.
  bool damage_interior(uint64_t number) {
    ColdCluster cold(stage_, 1);
    WorkerContext& worker = *cold.cluster.worker(0).context;
    worker.enter();
    const PageHeader* root = nullptr;
    const SnapshotPointer at(cold.storage.root.snapshot_word.load(std::memory_order_relaxed));
    CHECK(worker.snapshot_page(at, root) == Status::ok && root->level == 2);
    const auto* above = reinterpret_cast<const ArrayInterior*>(root);
    const SnapshotPointer page(
        above->children[number].snapshot_word.load(std::memory_order_relaxed));
    worker.leave_snapshots();
    worker.leave();
    return stage_.power_cut()
        .corrupt(stage_.path(page.node(), page.snapshot()), page.page() * kPageBytes + 1000, 1)
        .has_value();
  }

  /// Scans at most `most` of the records [first, last] with a cache of this size, which has only
  /// the pages of record `warm`. The first record of each leaf is its number plus one; the other
  /// records are 0.
  ScanTrace scan(uint32_t frames, uint64_t first, uint64_t last, bool forward,
                 uint64_t most = kNoLimit, Isolation isolation = Isolation::serializable,
                 std::optional<uint64_t> warm = {}) {
    ColdCluster cold(stage_, 1, true, frames);
    if (warm) {
      EXPECT_EQ(cold.cluster.worker(0).run([&](Transaction& txn) {
        std::array<std::byte, kPayload> record;
        return Array(cold.storage).get(txn, *warm, record.data());
      }),
                Status::ok);
    }
    const Counter& ahead = cold.cluster.metrics(0, 0).scan_pages_ahead;
    ScanTrace trace;
    TransactionMode mode;
    mode.isolation = isolation;
    Transaction& txn = *cold.cluster.worker(0).transaction;
    EXPECT_EQ(txn.begin(kMaxEpoch, mode), Status::ok);
    ArrayCursor cursor(Array(cold.storage), txn, first, last, forward);
    std::array<uint64_t, kPayload / sizeof(uint64_t)> payload;
    uint64_t index = 0;
    while (trace.records < most && (trace.end = cursor.next(index, payload.data())) == Status::ok) {
      EXPECT_EQ(index, forward ? first + trace.records : last - trace.records);
      EXPECT_EQ(payload[0], index % per_leaf() == 0 ? index + 1 : 0);
      ++trace.records;
    }
    if (trace.end == Status::ok || trace.end == Status::end_of_scan) {
      EXPECT_EQ(txn.commit(), Status::ok);
    } else {
      txn.rollback(trace.end);
    }
    trace.ahead = ahead.get();
    trace.waits = cold.cache().statistics().misses - trace.ahead;
    return trace;
  }

  /// How a transaction finds records before it reads them.
  enum class Finding : uint8_t { one_by_one, together, for_update, by_prefetch };
  struct FindTrace {
    uint64_t read = 0;   // pages that were read by the search
    uint64_t later = 0;  // reads of files after it
  };

  /// Finds the first records of these leaves, reads them and checks them. At first the cache has
  /// the last leaf and the pages above the leaves.
  FindTrace find(const std::vector<uint64_t>& leaves, Finding finding) {
    ColdCluster cold(stage_, 1, true, 1'000);
    const Array array(cold.storage);
    TestWorker& worker = cold.cluster.worker(0);
    std::array<uint64_t, kPayload / sizeof(uint64_t)> payload;
    EXPECT_EQ(
        worker.run([&](Transaction& txn) { return array.get(txn, records_ - 1, payload.data()); }),
        Status::ok);
    std::vector<uint64_t> indexes;
    for (const uint64_t leaf : leaves) indexes.push_back(leaf * per_leaf());
    std::vector<RecordRef> refs(indexes.size());
    const SnapshotCache::Statistics before = cold.cache().statistics();
    Transaction& txn = *worker.transaction;
    EXPECT_EQ(txn.begin(), Status::ok);
    Status status = Status::ok;
    if (finding == Finding::together) status = array.find_many(txn, indexes, refs);
    if (finding == Finding::for_update) status = array.find_many_for_update(txn, indexes, refs);
    if (finding == Finding::by_prefetch) {
      array.prefetch(txn, indexes);
      EXPECT_EQ(txn.pointer_set_size() + txn.read_set_size(), 0u);
    }
    EXPECT_EQ(status, Status::ok);
    const SnapshotCache::Statistics found = cold.cache().statistics();
    for (size_t i = 0; i < indexes.size(); ++i) {
      const bool has_ref = finding == Finding::together || finding == Finding::for_update;
      EXPECT_EQ(has_ref ? array.get(txn, refs[i], 0, kPayload, payload.data())
                        : array.get(txn, indexes[i], payload.data()),
                Status::ok);
      EXPECT_EQ(payload[0], indexes[i] + 1);
    }
    EXPECT_EQ(txn.commit(), Status::ok);
    return {found.frames_in_use - before.frames_in_use,
            cold.cache().statistics().misses - found.misses};
  }

 private:
  void take(uint64_t first_leaf, uint64_t step) {
    ColdCluster cold(stage_, 1);
    std::vector<GleanedLog> logs;
    for (uint64_t leaf = first_leaf; leaf < leaves(); leaf += step) {
      const uint64_t index = leaf * per_leaf();
      const uint64_t value = index + 1;
      logs.push_back({LogType::update, big_endian(index), 0,
                      std::string(reinterpret_cast<const char*>(&value), sizeof value),
                      Vid::make(cold.next_epoch(), 1)});
    }
    CHECK(cold.take(std::move(logs)).empty());
  }

  uint64_t records_;
  ArrayShape shape_;
  SnapshotStage stage_;
};

/// The cache has room, so a look-up that misses a page also reads the pages after it. A search
/// reads exactly the pages that it needs.
TEST(ScanAheadTest, RecordsOfAnArrayThatAreFoundTogetherAreReadTogether) {
  using Finding = ScatteredArray::Finding;
  ScatteredArray array;
  const std::vector<uint64_t> leaves = {3, 17, 30, 44, 57, 71, 85, 98};
  ASSERT_GT(array.leaves(), 100u);
  for (const Finding finding : {Finding::together, Finding::for_update, Finding::by_prefetch}) {
    SCOPED_TRACE(static_cast<int>(finding));
    const auto trace = array.find(leaves, finding);
    EXPECT_EQ(trace.read, leaves.size());
    EXPECT_EQ(trace.later, 0u);
  }
  const auto one_by_one = array.find(leaves, Finding::one_by_one);
  EXPECT_EQ(one_by_one.read, 0u);
  EXPECT_GT(one_by_one.later, 1u);
  const auto single = array.find({30}, Finding::together);
  EXPECT_GT(single.read, 1u) << "a single page is left to its look-up, which reads further pages";
  EXPECT_EQ(single.later, 0u);
}

TEST(ScanAheadTest, LeavesOfAnArrayAreReadInFewBatches) {
  ScatteredArray array;
  const uint64_t last = ScatteredArray::kRecords - 1;
  for (const Isolation isolation : {Isolation::serializable, Isolation::snapshot_read_only}) {
    for (const bool forward : {true, false}) {
      for (const uint32_t frames : {64u, 1'000u}) {
        const ScanTrace trace = array.scan(frames, 0, last, forward, kNoLimit, isolation);
        EXPECT_EQ(trace.records, ScatteredArray::kRecords);
        EXPECT_LT(6 * trace.waits, array.leaves()) << (forward ? "forward" : "backward");
      }
    }
  }
}

/// All leaves below the page are lost. The scan returns the records before them, and then the error
/// of the page.
TEST(ScanAheadTest, ADamagedInteriorPageOfAnArrayEndsTheScanWhenItIsReached) {
  constexpr uint64_t kInteriors = 3;
  const uint64_t per_leaf = ArrayShape(1, ScatteredArray::kPayload).records_per_leaf;
  const uint64_t per_interior = kArrayFanout * per_leaf;
  const uint64_t last = kInteriors * per_interior - 1;
  ScatteredArray array(last + 1);
  ASSERT_TRUE(array.damage_interior(1));
  for (const Isolation isolation : {Isolation::serializable, Isolation::snapshot_read_only}) {
    for (const bool forward : {true, false}) {
      SCOPED_TRACE(forward ? "forward" : "backward");
      // Only the scan that reaches the page gets the error.
      const ScanTrace all = array.scan(1'000, 0, last, forward, kNoLimit, isolation);
      EXPECT_EQ(all.end, Status::snapshot_unreadable);
      EXPECT_EQ(all.records, per_interior);
      const uint64_t first = forward ? 0 : 2 * per_interior;
      const ScanTrace one =
          array.scan(1'000, first, first + per_interior - 1, forward, kNoLimit, isolation);
      EXPECT_EQ(one.end, Status::end_of_scan);
      EXPECT_EQ(one.records, per_interior);
      const ScanTrace lost =
          array.scan(1'000, per_interior, per_interior + 5, forward, kNoLimit, isolation);
      EXPECT_EQ(lost.end, Status::snapshot_unreadable);
      EXPECT_EQ(lost.records, 0u);
    }
  }
}

TEST(ScanAheadTest, AScanOfAnArrayReadsNoLeafBeyondItsRange) {
  ScatteredArray array;
  const uint64_t per_leaf = array.per_leaf();
  for (const bool forward : {true, false}) {
    for (const uint64_t count : {1u, 2u, 8u, 16u}) {
      // Only cached interior pages name the next leaves.
      const ScanTrace trace = array.scan(1'000, 20 * per_leaf, (20 + count) * per_leaf - 1, forward,
                                         kNoLimit, Isolation::serializable, 150 * per_leaf);
      EXPECT_EQ(trace.records, count * per_leaf);
      EXPECT_EQ(trace.ahead, count - 1);
    }
    const ScanTrace shortest = array.scan(1'000, 0, ScatteredArray::kRecords - 1, forward, 1,
                                          Isolation::serializable, 100 * per_leaf);
    EXPECT_EQ(shortest.ahead, 1u) << "the end of the range is not near";
    const ScanTrace tiny = array.scan(4, 0, ScatteredArray::kRecords - 1, forward);
    EXPECT_EQ(tiny.records, ScatteredArray::kRecords);
    EXPECT_EQ(tiny.ahead, 0u) << "a small cache permits no batch";
  }
}

}  // namespace
}  // namespace atolldb::test
