// Tests of the merging of runs of sequential storages (R69): which runs are merged, and what
// composers and `combine_roots` do with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/compose/sequential_runs.h"
#include "engine/format/sequential_page.h"
#include "tests/engine/compose/damaged_pages.h"
#include "tests/engine/compose/snapshot_stage.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Returns the largest number of runs that the merge rule leaves of `pages` pages. It is a
/// logarithm of the pages that one snapshot copies (kMaxMergedPages), plus two runs per
/// kMaxMergedPages pages.
uint64_t most_runs(uint64_t pages) {
  return 2 + std::bit_width(kMaxMergedPages) + 2 * pages / kMaxMergedPages;
}

/// Returns a run of `pages` pages whose records are all of one epoch.
SequentialRun run_of(uint64_t epoch, uint64_t pages) { return {1, pages, epoch, epoch, pages}; }

/// Simulates the runs of one node over several snapshots. The runs have no real pages.
struct RunHistory {
  static constexpr uint64_t kRecordsPerPage = 30;

  /// Takes a snapshot with new records. They first fill the last page of a merged run.
  void take(uint64_t new_records) {
    const size_t first = first_merged_run(runs);
    uint64_t merged_pages = 0;
    uint64_t merged = new_records;
    uint64_t low = ++epoch;
    for (size_t i = first; i < runs.size(); ++i) {
      merged_pages += runs[i].pages;
      merged += runs[i].records;
    }
    if (first < runs.size()) low = runs[first].first_epoch;
    ASSERT_LE(merged_pages, kMaxMergedPages);
    copied += merged_pages;
    runs.resize(first);
    runs.push_back({1, (merged + kRecordsPerPage - 1) / kRecordsPerPage, low, epoch, merged});
    records += new_records;
    uint64_t found = 0;
    pages = 0;
    for (const SequentialRun& run : runs) {
      found += run.records;
      pages += run.pages;
    }
    ASSERT_EQ(found, records);
    ASSERT_LE(runs.size(), most_runs(pages)) << "after epoch " << epoch;
  }

  std::vector<SequentialRun> runs;
  uint64_t epoch = 0;
  uint64_t records = 0;
  uint64_t copied = 0;  // pages that snapshots have copied
  uint64_t pages = 0;
};

TEST(MergedRuns, OfTenThousandSnapshotsAreFewAndCopiedPagesGrowByALogarithm) {
  constexpr uint64_t kSnapshots = 10'000;
  std::mt19937_64 random(seed());
  const uint64_t most = RunHistory::kRecordsPerPage * 1000;
  const std::vector<std::function<uint64_t(uint64_t)>> loads = {
      [](uint64_t) { return 1; },
      [](uint64_t) { return RunHistory::kRecordsPerPage; },
      [](uint64_t) { return RunHistory::kRecordsPerPage * 10; },
      [&](uint64_t) { return 1 + random() % 600; },
      [&](uint64_t) { return uint64_t{1} << random() % 15; },
      [&](uint64_t i) { return i % 2 == 0 ? 1 : most; },
      [&](uint64_t i) { return 1 + most * (kSnapshots - i) / kSnapshots; }};
  for (size_t load = 0; load < loads.size(); ++load) {
    RunHistory history;
    for (uint64_t i = 0; i < kSnapshots; ++i) {
      ASSERT_NO_FATAL_FAILURE(history.take(loads[load](i))) << "load " << load;
    }
    // Each snapshot may copy one page that is not full, hence the term kSnapshots.
    EXPECT_LE(history.copied, kSnapshots + history.pages * std::bit_width(kMaxMergedPages))
        << "load " << load;
  }
}

TEST(MergedRuns, HaveAsManyPagesAsOneSnapshotCopiesAndNotOneMore) {
  const uint64_t half = kMaxMergedPages / 2;
  EXPECT_EQ(first_merged_run({}), 0u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, half), run_of(2, half)}), 0u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, half + 1), run_of(2, half)}), 2u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, half), run_of(2, half + 1)}), 2u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, UINT64_MAX), run_of(2, 1)}), 1u);
}

TEST(MergedRuns, AreMergedIfTheNewerOnesHaveAsManyPages) {
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 1)}), 0u) << "the new pages are at least one";
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 2)}), 1u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 8), run_of(2, 4), run_of(3, 3)}), 0u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 9), run_of(2, 4), run_of(3, 3)}), 1u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 9), run_of(2, 5), run_of(3, 3)}), 0u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 10), run_of(2, 5), run_of(3, 3)}), 3u);
}

TEST(MergedRuns, EndAtALostPageAndAtOverlappingEpochs) {
  const SequentialRun lost{1, 1, 2, 2, 0};
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 1), lost, run_of(3, 1)}), 2u);
  EXPECT_EQ(first_merged_run(std::vector{run_of(1, 1), lost}), 2u);
  const SequentialRun wide{1, 1, 1, 3, 1};
  EXPECT_EQ(first_merged_run(std::vector{wide, run_of(3, 1)}), 0u) << "they share an epoch";
  EXPECT_EQ(first_merged_run(std::vector{wide, run_of(2, 1)}), 1u);
}

/// Snapshots of a stage with two nodes. Each node has records of every epoch.
class MergedRunsTest : public testing::Test {
 protected:
  /// Takes a snapshot with `count` records of each node in each of `epochs` epochs.
  void take(uint64_t count, uint64_t epochs = 1, size_t payload_bytes = 100) {
    std::vector<GleanedLog> logs;
    for (uint64_t node = 0; node < stage_.composing_nodes; ++node) {
      for (uint64_t i = 0; i < count * epochs; ++i) {
        const Vid vid = Vid::make(stage_.epoch + 1 + i / count, 1 + i % count);
        const std::string text = std::to_string(node) + " " + std::to_string(next_[node]++);
        std::string payload = text + std::string(payload_bytes, '.');
        logs.push_back(
            {LogType::append, big_endian(node) + big_endian(i), 0, std::move(payload), vid});
        ++records_;
      }
    }
    std::vector<std::string> lows = {""};
    if (stage_.composing_nodes == 2) lows.push_back(big_endian(1));
    const auto combined = stage_.round(logs, lows, stage_.epoch + epochs);
    ASSERT_TRUE(combined) << combined.error().message;
    EXPECT_EQ(combined->records, records_);
    ASSERT_NO_FATAL_FAILURE(check());
  }
  /// Checks that the records of each node are in the order of their appends. The walk itself checks
  /// the epochs, the numbers of pages and the counts of records of each run.
  void check() {
    uint64_t next[SnapshotStage::kNodes] = {};
    const auto totals = stage_.walk([&](const WalkedRecord& record) {
      const char* text = reinterpret_cast<const char*>(record.payload.data());
      const auto node = static_cast<size_t>(text[0] - '0');
      EXPECT_EQ(std::stoull(text + 2), next[node]++) << "of node " << node;
      return Result<void>();
    });
    ASSERT_TRUE(totals) << totals.error().message;
    for (size_t node = 0; node < SnapshotStage::kNodes; ++node) {
      EXPECT_EQ(next[node], next_[node]);
    }
  }
  std::vector<SequentialRun> runs() {
    std::vector<SequentialRun> found;
    PageBuffer page;
    for (SnapshotPointer at = stage_.storage.base_root; !at.is_null();) {
      const auto read = stage_.reader.read(at, &page.header());
      EXPECT_TRUE(read) << read.error().message;
      if (!read) return found;
      const auto* root = page.as<SequentialSnapshotRoot>();
      found.insert(found.begin(), root->runs, root->runs + root->count);
      at = SnapshotPointer(root->previous);
    }
    return found;
  }
  uint64_t count_pages() {
    uint64_t pages = 0;
    for (const SequentialRun& run : runs()) pages += run.pages;
    return pages;
  }

  SnapshotStage stage_{StorageType::sequential};
  uint64_t next_[SnapshotStage::kNodes] = {};
  uint64_t records_ = 0;
};

TEST_F(MergedRunsTest, OfSmallSnapshotsAreFewAndFull) {
  for (int i = 0; i < 300; ++i) ASSERT_NO_FATAL_FAILURE(take(1));
  EXPECT_LE(runs().size(), SnapshotStage::kNodes * most_runs(0));
  // 600 records of about 130 bytes. All pages are full, except the last page of each run.
  EXPECT_LE(count_pages(), 600 * 130 / SequentialPage::kDataBytes + runs().size() + 1);
}

TEST_F(MergedRunsTest, OfRandomSnapshotsKeepEveryRecordInItsOrder) {
  std::mt19937_64 random(seed());
  for (uint64_t i = rounds(40, 400); i > 0; --i) {
    stage_.rewrites = random() % 20 == 0;
    stage_.merges_runs = random() % 4 != 0;
    const uint64_t count = random() % 3 == 0 ? 0 : random() % 200;
    ASSERT_NO_FATAL_FAILURE(take(count, 1 + random() % 3, random() % 1000));
  }
}

/// A data directory of an older version has a run per node and snapshot. The next snapshot merges
/// them.
TEST_F(MergedRunsTest, OfAnOlderVersionAreMergedAtOnce) {
  stage_.merges_runs = false;
  for (int i = 0; i < 120; ++i) ASSERT_NO_FATAL_FAILURE(take(1));
  ASSERT_EQ(runs().size(), 240u);
  ASSERT_GT(runs().size(), uint64_t{SequentialSnapshotRoot::kMaxRuns}) << "one root page has all";
  stage_.merges_runs = true;
  ASSERT_NO_FATAL_FAILURE(take(1));
  EXPECT_EQ(runs().size(), 2u);
}

TEST_F(MergedRunsTest, LeaveTheRunsOfNodesWithoutNewRecordsAlone) {
  stage_.merges_runs = false;
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(take(1));
  stage_.merges_runs = true;
  std::vector<GleanedLog> logs = {
      {LogType::append, big_endian(0), 0, "0 10", Vid::make(stage_.epoch + 1, 1)}};
  ASSERT_TRUE(stage_.round(logs, {""}, stage_.epoch + 1));
  ++next_[0];
  EXPECT_EQ(stage_.composed.at(0).pages_read, 11u) << "ten pages and their root";
  EXPECT_EQ(stage_.composed.at(1).pages_read, 0u);
  EXPECT_EQ(runs().size(), 11u);
  ASSERT_NO_FATAL_FAILURE(check());
}

TEST_F(MergedRunsTest, OfARewriteAreOnePerNode) {
  stage_.merges_runs = false;
  for (int i = 0; i < 60; ++i) ASSERT_NO_FATAL_FAILURE(take(40, 2));
  EXPECT_EQ(runs().size(), 120u);
  stage_.rewrites = true;
  ASSERT_NO_FATAL_FAILURE(take(0));
  EXPECT_EQ(runs().size(), 2u);
  ASSERT_NO_FATAL_FAILURE(take(1));
  EXPECT_EQ(runs().size(), 2u) << "new records follow the copied ones";
}

/// The epochs of a run ascend. Therefore runs of a node that left the cluster are not merged with
/// the runs of the node that composes them now.
TEST_F(MergedRunsTest, OfANodeThatLeftStayApart) {
  for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(take(5));
  ASSERT_EQ(runs().size(), 2u);
  stage_.composing_nodes = 1;
  stage_.rewrites = true;
  ASSERT_NO_FATAL_FAILURE(take(5));
  EXPECT_EQ(runs().size(), 2u);
  stage_.rewrites = false;
  for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(take(5));
  EXPECT_LE(runs().size(), 3u);
}

/// R56: an unreadable page becomes a run of its own, and all other records are merged. When the
/// page can be read again, a rewrite joins it with its neighbours.
TEST_F(MergedRunsTest, LeaveAnUnreadablePageAtItsPlace) {
  stage_.composing_nodes = 1;
  stage_.merges_runs = false;
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(take(1));
  PageDamage damage(stage_);
  const SnapshotPointer page(runs().at(1).first_page);
  damage.flip(stage_.path(page.node(), page.snapshot()), page.page());
  stage_.merges_runs = true;
  const auto combined =
      stage_.round({{LogType::append, big_endian(0), 0, "0 3", Vid::make(stage_.epoch + 1, 1)}},
                   {""}, stage_.epoch + 1);
  ASSERT_TRUE(combined) << combined.error().message;
  ++next_[0];
  ++records_;
  ASSERT_EQ(stage_.unreadable.size(), 1u);
  EXPECT_EQ(stage_.unreadable[0].page, page);
  const std::vector<SequentialRun> split = runs();
  ASSERT_EQ(split.size(), 3u);
  EXPECT_TRUE(split[1].is_lost());
  EXPECT_EQ(split[2].records, 2u);
  damage.repair();
  ASSERT_NO_FATAL_FAILURE(check());
  stage_.rewrites = true;
  ASSERT_NO_FATAL_FAILURE(take(1));
  EXPECT_EQ(runs().size(), 1u);
}

/// R56: an unreadable root page stays in the chain, with all older root pages. When it can be read
/// again, the storage is complete, although later root pages could not count its records.
TEST_F(MergedRunsTest, BeforeAnUnreadableRootPageStayBehindIt) {
  stage_.composing_nodes = 1;
  for (const bool merges_runs : {false, true}) {
    stage_.merges_runs = merges_runs;
    ASSERT_NO_FATAL_FAILURE(take(1));
    PageDamage damage(stage_);
    const SnapshotPointer root = stage_.storage.base_root;
    damage.flip(stage_.path(root.node(), root.snapshot()), root.page());
    const Vid vid = Vid::make(stage_.epoch + 1, 1);
    const std::string payload = "0 " + std::to_string(next_[0]++);
    const auto combined =
        stage_.round({{LogType::append, big_endian(0), 0, payload, vid}}, {""}, stage_.epoch + 1);
    ASSERT_TRUE(combined) << combined.error().message;
    ++records_;
    damage.repair();
    ASSERT_NO_FATAL_FAILURE(check());
    stage_.rewrites = true;
    ASSERT_NO_FATAL_FAILURE(take(1));
    EXPECT_EQ(runs().size(), 1u);
    stage_.rewrites = false;
  }
}

/// Composed pages come from another process, so `combine_roots` checks them.
TEST_F(MergedRunsTest, ThatReplaceNoRunOfTheBaseAreNotCombined) {
  ASSERT_NO_FATAL_FAILURE(take(1));
  const std::vector<GleanedLog> logs = {
      {LogType::append, big_endian(0), 0, "0 1", Vid::make(stage_.epoch + 1, 1)}};
  const auto expect_error = [&](const std::string& text) {
    const auto combined = stage_.round(logs, {""}, stage_.epoch + 1);
    ASSERT_FALSE(combined);
    EXPECT_EQ(combined.error().code, ExitCode::failed);
    EXPECT_TRUE(combined.error().message.contains(text)) << combined.error().message;
  };
  stage_.before_combine = [&] {
    ComposedPage& first = stage_.composed.at(0).pages.at(0);
    ASSERT_TRUE(is_replaced_from(first));
    first.page = SnapshotPointer(first.page.word() + 1);
  };
  ASSERT_NO_FATAL_FAILURE(expect_error("composed runs that no readable root page has"));
  stage_.before_combine = [&] {
    std::vector<ComposedPage>& pages = stage_.composed.at(0).pages;
    pages.push_back(pages.at(0));  // only the first page may name a replaced run
  };
  ASSERT_NO_FATAL_FAILURE(expect_error("do not fit"));
}

/// A rewrite must replace every run, because the files of the base are deleted after it.
TEST_F(MergedRunsTest, OfARewriteThatLacksANodeAreNotCombined) {
  ASSERT_NO_FATAL_FAILURE(take(1));
  stage_.rewrites = true;
  stage_.before_combine = [&] { stage_.composed.pop_back(); };
  const auto combined = stage_.round({}, {""}, stage_.epoch + 1);
  ASSERT_FALSE(combined);
  EXPECT_TRUE(combined.error().message.contains("runs remain in the files of victims"))
      << combined.error().message;
}

}  // namespace
}  // namespace atolldb::test
