// Scans over many runs of snapshot pages: their order, and their cost per record.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/snapshot/run_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Fills a stage with snapshots of random size. Returns the number of pages.
uint64_t fill(RunStage& runs, uint64_t snapshots, std::mt19937_64& random) {
  uint64_t next[SnapshotStage::kNodes] = {};
  uint64_t epoch = 1;
  uint64_t pages = 0;
  for (uint64_t i = 0; i < snapshots; ++i) {
    const uint64_t last = epoch + random() % 4;
    std::vector<NumberedAppend> appends;
    for (uint64_t node = 0; node < SnapshotStage::kNodes; ++node) {
      for (uint64_t at = epoch; at <= last; ++at) {
        for (uint64_t n = random() % 12; n > 0; --n) appends.push_back({at, node, next[node]++});
      }
    }
    EXPECT_EQ(runs.take(appends, last, random() % 700), "");
    for (const ComposedPartition& partition : runs.stage.composed) {
      pages += partition.pages_written;
    }
    epoch = last + 1;
  }
  return pages;
}

TEST(RunScan, FindsWhatWasAppendedInAnyRangeOfEpochs) {
  std::mt19937_64 random(seed());
  for (const bool merges_runs : {false, true}) {
    RunStage runs(merges_runs);
    fill(runs, rounds(60, 600), random);
    ColdCluster cold(runs.stage, 1);
    size_t most_open = 0;
    EXPECT_EQ(runs.scan(cold, 0, kMaxEpoch, most_open), "");
    for (int i = 0; i < 50; ++i) {
      const uint64_t first = random() % (runs.stage.epoch + 2);
      const uint64_t last = first + random() % 20;
      EXPECT_EQ(runs.scan(cold, first, last, most_open), "") << first << " to " << last;
    }
  }
}

/// Each snapshot adds a run per node, and the scan opens only the runs of one snapshot at a time.
TEST(RunScan, CostsTheSamePerRecordForAnyNumberOfRuns) {
  std::mt19937_64 random(seed());
  for (const uint64_t snapshots : {4u, 40u, 400u}) {
    RunStage runs(false);
    const uint64_t pages = fill(runs, snapshots, random);
    ColdCluster cold(runs.stage, 1);
    size_t most_open = 0;
    const auto requests = [&] { return cold.cluster.metrics(0, 0).snapshot_reads.get(); };
    const uint64_t before = requests();
    ASSERT_EQ(runs.scan(cold, 0, kMaxEpoch, most_open), "");
    // At most one request per record, one to open each page, and one per root page.
    const uint64_t roots = 1 + 2 * snapshots / SequentialSnapshotRoot::kMaxRuns;
    EXPECT_LE(requests() - before, runs.all.size() + pages + roots);
    EXPECT_LE(most_open, SnapshotStage::kNodes) << snapshots << " snapshots";
  }
}

/// A range of epochs in a long run is found without reading the run from its begin.
TEST(RunScan, OfFewEpochsReadsFewPagesOfALongRun) {
  std::mt19937_64 random(seed());
  RunStage runs(true);
  fill(runs, 100, random);
  runs.stage.rewrites = true;
  ASSERT_EQ(runs.take({}, runs.stage.epoch + 1, 0), "");
  uint64_t pages = 0;
  for (const ComposedPartition& partition : runs.stage.composed) pages += partition.pages_written;
  ASSERT_GT(pages, 50u);
  ColdCluster cold(runs.stage, 1);
  size_t most_open = 0;
  const uint64_t epoch = runs.all.back().epoch;
  uint64_t found = 0;
  for (const NumberedAppend& append : runs.all) found += append.epoch == epoch ? 1 : 0;
  const uint64_t before = cold.cluster.metrics(0, 0).snapshot_reads.get();
  ASSERT_EQ(runs.scan(cold, epoch, epoch, most_open), "");
  // Each node needs a binary search for the page, and then reads the records of this page that
  // precede the first one of the epoch.
  constexpr uint64_t kRecordsPerPage = 300;
  const uint64_t per_node = std::bit_width(pages) + kRecordsPerPage + 3;
  EXPECT_LE(cold.cluster.metrics(0, 0).snapshot_reads.get() - before,
            found + SnapshotStage::kNodes * per_node + 1);
}

TEST(RunScan, KeepsTheOrderOfEpochsInRunsOfANodeThatLeft) {
  EXPECT_EQ(merged_runs_keep_the_order_of_epochs(), "");
}

}  // namespace
}  // namespace atolldb::test
