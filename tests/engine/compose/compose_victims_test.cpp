// Jobs with victims: which pages are copied, which are kept unread, and which files remain.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/format/sequential_page.h"
#include "tests/engine/compose/compose_rules.h"
#include "tests/engine/compose/victim_rules.h"

namespace atolldb::test {
namespace {

uint64_t live_pages_of(const SnapshotStage& stage, uint32_t snapshot) {
  uint64_t pages = 0;
  for (const LivePages& live : stage.metadata.live) {
    if (live.snapshot == snapshot) pages += live.all();
  }
  return pages;
}

uint64_t pages_read(const SnapshotStage& stage) {
  uint64_t pages = 0;
  for (const ComposedPartition& partition : stage.composed) pages += partition.pages_read;
  return pages;
}

bool has_file_of(const SnapshotStage& stage, uint32_t snapshot) {
  return std::ranges::binary_search(snapshots_of(stage.metadata.files), snapshot);
}

TEST(ComposeVictims, CountsEqualAWalk) { EXPECT_EQ(counts_equal_a_walk(), ""); }

TEST(ComposeVictims, AreEmptiedAlthoughNewerPagesLeadToThem) {
  EXPECT_EQ(victims_are_emptied(), "");
}

/// The victim, which is the second snapshot, holds a few pages of a large tree. The job reads and
/// copies only these pages and the pages above them.
TEST(ComposeVictims, OnlyTheirPagesAndThoseAboveAreReadAndCopied) {
  std::mt19937_64 random(seed());
  constexpr uint64_t kRecords = 60'000;
  SnapshotStage stage(StorageType::mastertree);
  const auto write = [&](const std::set<uint64_t>& numbers, LogType type, uint64_t epoch) {
    std::vector<GleanedLog> logs;
    for (const uint64_t number : numbers) {
      logs.push_back({type, big_endian(number), 0, std::string(60, 'x'), Vid::make(epoch, 1)});
    }
    const auto combined = stage.round(logs, {""}, epoch);
    ASSERT_TRUE(combined) << combined.error().message;
  };
  std::set<uint64_t> all;
  for (uint64_t i = 0; i < kRecords; ++i) all.insert(i);
  ASSERT_NO_FATAL_FAILURE(write(all, LogType::insert, 3));
  const auto totals = stage.walk([](const WalkedRecord&) { return Result<void>(); });
  ASSERT_TRUE(totals) << totals.error().message;
  const uint64_t interiors = totals->pages - totals->leaf_pages;
  for (uint64_t epoch = 4; epoch < 7; ++epoch) {  // snapshots 2 to 4
    std::set<uint64_t> some;
    while (some.size() < 10) some.insert(random() % kRecords);
    ASSERT_NO_FATAL_FAILURE(write(some, LogType::update, epoch));
  }
  const uint64_t live = live_pages_of(stage, 2);
  ASSERT_GT(live, 0u);
  ASSERT_LE(live, 10 + interiors);
  stage.victims = {2};
  const auto combined = stage.round({}, {""}, 7);
  ASSERT_TRUE(combined) << combined.error().message;
  EXPECT_GE(combined->pages_written, live);
  EXPECT_LE(combined->pages_written, live + interiors);
  EXPECT_LE(pages_read(stage), live + interiors) << "newer and older leaves are not read";
  ASSERT_NO_FATAL_FAILURE(check_files(stage, {2}));
  EXPECT_TRUE(has_file_of(stage, 1) && has_file_of(stage, 3) && has_file_of(stage, 4));
}

/// A tree whose border pages all lead to layers. The victim has one of these layers. The other
/// border pages could lead to the victim, too, so the job reads them and their layers. It does not
/// copy them.
TEST(ComposeVictims, BorderPagesThatLeadToOtherLayersOnlyAreNotCopied) {
  SnapshotStage stage(StorageType::mastertree);
  const auto insert = [&](uint64_t first, uint64_t end, uint64_t epoch) {
    std::vector<GleanedLog> logs;
    for (uint64_t slice = first; slice < end; ++slice) {
      for (const char* rest : {"one key of the layer", "two keys of the layer"}) {
        logs.push_back(
            {LogType::insert, big_endian(slice) + rest, 0, "value", Vid::make(epoch, 1)});
      }
    }
    const auto combined = stage.round(logs, {""}, epoch);
    ASSERT_TRUE(combined) << combined.error().message;
  };
  ASSERT_NO_FATAL_FAILURE(insert(0, 1, 3));
  ASSERT_NO_FATAL_FAILURE(insert(1, 2000, 4));
  const uint64_t live = live_pages_of(stage, 1);
  ASSERT_EQ(live, 1u) << "the root of the first layer below slice 0";
  const auto totals = stage.walk([](const WalkedRecord&) { return Result<void>(); });
  ASSERT_TRUE(totals) << totals.error().message;
  const uint64_t interiors = totals->pages - totals->leaf_pages;
  ASSERT_GT(totals->leaf_pages, 2000 + 2 * interiors) << "more border pages than may be copied";
  stage.victims = {1};
  const auto combined = stage.round({}, {""}, 5);
  ASSERT_TRUE(combined) << combined.error().message;
  EXPECT_LE(combined->pages_written, live + 1 + interiors);
  ASSERT_NO_FATAL_FAILURE(check_files(stage, {1}));
  EXPECT_TRUE(has_file_of(stage, 2));
}

TEST(ComposeVictims, AFileWithoutLivePagesIsNotNeededEvenWithoutVictims) {
  VictimTree tree;
  ASSERT_EQ(tree.write(1, LogType::insert), "");
  EXPECT_TRUE(has_file_of(tree.stage, 1));
  ASSERT_EQ(tree.write(1, LogType::insert), "");
  EXPECT_FALSE(has_file_of(tree.stage, 1));
  EXPECT_EQ(tree.check(), "");
}

TEST(ComposeVictims, AStorageWithoutPagesInThemIsNotRead) {
  VictimTree tree;
  ASSERT_EQ(tree.write(1, LogType::insert), "");
  ASSERT_EQ(tree.write(1, LogType::insert), "");
  tree.stage.victims = {1};  // snapshot 1 has no live page
  const SnapshotPointer root = tree.stage.storage.base_root;
  ASSERT_EQ(tree.take({}), "");
  EXPECT_EQ(tree.stage.storage.base_root, root);
}

/// Metadata of an earlier format have no counts of live pages. Once all of their snapshots were
/// victims, there are counts for all files.
TEST(ComposeVictims, SnapshotsWithoutCountsAreCopiedOnceAndHaveCountsThen) {
  VictimTree tree;
  ASSERT_EQ(tree.write(1, LogType::insert), "");
  ASSERT_EQ(tree.write(100, LogType::insert), "");
  tree.stage.metadata.live.clear();
  tree.stage.metadata.uncounted = {1, 2};
  ASSERT_EQ(tree.write(1000, LogType::insert), "");
  EXPECT_EQ(tree.stage.metadata.uncounted, (std::vector<uint32_t>{1, 2}));
  ASSERT_EQ(tree.check(), "");
  for (const uint32_t victim : {1u, 2u}) {
    tree.stage.victims = {victim};
    ASSERT_EQ(tree.write(700, LogType::insert), "");
    EXPECT_FALSE(has_file_of(tree.stage, victim));
    ASSERT_EQ(tree.check(), "");
  }
  EXPECT_TRUE(tree.stage.metadata.uncounted.empty());
}

TEST(ComposeVictims, OfASequentialStorageLeaveTheOtherRunsAndOlderRootPagesInPlace) {
  SnapshotStage stage(StorageType::sequential);
  stage.merges_runs = false;  // otherwise one merged run would have all records
  constexpr uint32_t kSnapshots = SequentialSnapshotRoot::kMaxRuns + 20;
  for (uint32_t i = 1; i <= kSnapshots; ++i) {
    const GleanedLog log{LogType::append, big_endian(i) + big_endian(1), 0, std::to_string(i),
                         Vid::make(i, 1)};
    const auto combined = stage.round({log}, {""}, i);
    ASSERT_TRUE(combined) << combined.error().message;
  }
  constexpr uint32_t kVictim = kSnapshots - 3;  // its run is in the newest root page
  stage.victims = {kVictim};
  const auto combined = stage.round({}, {""}, kSnapshots + 1);
  ASSERT_TRUE(combined) << combined.error().message;
  EXPECT_EQ(combined->records, kSnapshots);
  EXPECT_EQ(combined->pages_written, 2u) << "one page of the run, and the newest root page";
  ASSERT_NO_FATAL_FAILURE(check_files(stage, {kVictim}));
  uint32_t next = 1;
  const auto totals = stage.walk([&](const WalkedRecord& record) {
    const std::string payload(reinterpret_cast<const char*>(record.payload.data()),
                              record.payload.size());
    EXPECT_EQ(payload, std::to_string(next++));
    return Result<void>();
  });
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_EQ(totals->records, kSnapshots);
}

}  // namespace
}  // namespace atolldb::test
