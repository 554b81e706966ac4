// Ranges of a storage: the walks of all ranges visit each record once, in the order of one walk.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/format/sequential_page.h"
#include "engine/snapshot/snapshot_writer.h"
#include "ops/verify/snapshot_split.h"
#include "tests/engine/compose/compose_rules.h"

namespace atolldb::test {
namespace {

using Visited = std::vector<std::pair<std::string, uint64_t>>;  // key, VID

SnapshotWalkStorage walked(const SnapshotStage& stage) {
  return {stage.storage.id, stage.storage.type, stage.storage.payload_bytes,
          stage.storage.record_count, stage.storage.base_root};
}

Visited visit(SnapshotStage& stage, const WalkRange& range) {
  Visited visited;
  const auto walk = walk_snapshot(
      stage.reader, walked(stage), stage.epoch,
      [&](const WalkedRecord& record) {
        visited.emplace_back(record.key, record.vid.version());
        return Result<void>();
      },
      {}, range);
  EXPECT_TRUE(walk) << walk.error().message;
  return visited;
}

/// Checks that the walks of all ranges visit each record once, in order. `is_large`: the storage
/// has more than 64 times kMinPagesPerRange leaf pages, so it has as many ranges as requested.
void expect_ranges(SnapshotStage& stage, uint64_t records, bool is_large) {
  const Visited whole = visit(stage, WalkRange{});
  ASSERT_EQ(whole.size(), records);
  for (const uint32_t count : {1u, 2u, 7u, 64u}) {
    SCOPED_TRACE("at most " + std::to_string(count) + " ranges");
    const std::vector<WalkRange> ranges = split_storage(stage.reader, walked(stage), count);
    EXPECT_EQ(ranges.size(), is_large ? count : 1u);
    ASSERT_EQ(ranges.front().low, 0u);
    ASSERT_EQ(ranges.back().last, UINT64_MAX);
    Visited visited;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (i != 0) {
        ASSERT_EQ(ranges[i].low, ranges[i - 1].last + 1);
      }
      const Visited part = visit(stage, ranges[i]);
      if (is_large) {
        EXPECT_LT(part.size(), 4 * records / count) << "range " << i << " is much too large";
      }
      visited.insert(visited.end(), part.begin(), part.end());
    }
    EXPECT_EQ(visited, whole);
  }
}

std::vector<GleanedLog> logs_of(LogType type, uint64_t records, uint64_t step,
                                const std::string& payload) {
  std::vector<GleanedLog> logs;
  for (uint64_t i = 0; i < records; ++i) {
    const std::string key =
        type == LogType::append ? big_endian(3) + big_endian(i) : big_endian(i * step);
    logs.push_back({type, key, 0, payload, Vid::make(3, static_cast<uint32_t>(i + 1))});
  }
  return logs;
}

TEST(SplitStorage, ATreeIsDividedByItsFirstEightBytes) {
  for (const uint64_t records : {uint64_t{1}, uint64_t{100}, uint64_t{10'000}}) {
    SnapshotStage stage(StorageType::mastertree);
    const std::string payload(records == 10'000 ? 2'000 : 8, 'x');
    ASSERT_TRUE(
        stage.round(logs_of(LogType::insert, records, UINT64_MAX / records, payload), {""}, 4));
    ASSERT_NO_FATAL_FAILURE(expect_ranges(stage, records, records == 10'000));
  }
}

TEST(SplitStorage, KeysWithCommonFirstBytesStayInOneRange) {
  SnapshotStage stage(StorageType::mastertree);
  std::vector<GleanedLog> logs;
  for (uint64_t i = 0; i < 2'000; ++i) {
    logs.push_back({LogType::insert, "the-same" + big_endian(i), 0, std::string(500, 'x'),
                    Vid::make(3, static_cast<uint32_t>(i + 1))});
  }
  ASSERT_TRUE(stage.round(logs, {""}, 4));
  ASSERT_NO_FATAL_FAILURE(expect_ranges(stage, 2'000, false));
}

TEST(SplitStorage, AnArrayIsDividedAtLeafPages) {
  for (const uint64_t records : {uint64_t{1}, uint64_t{100}, uint64_t{10'000}}) {
    const uint32_t payload_bytes = records == 10'000 ? 1'900 : 8;
    SnapshotStage stage(StorageType::array, records, payload_bytes);
    ASSERT_TRUE(stage.round(logs_of(LogType::update, records, 1, std::string(payload_bytes, 'x')),
                            {""}, 4));
    ASSERT_NO_FATAL_FAILURE(expect_ranges(stage, records, records == 10'000));
  }
}

TEST(SplitStorage, ASequentialStorageIsDividedByPages) {
  for (const uint64_t records : {uint64_t{1}, uint64_t{100}, uint64_t{10'000}}) {
    SnapshotStage stage(StorageType::sequential);
    const std::string payload(records == 10'000 ? 2'000 : 8, 'x');
    ASSERT_TRUE(stage.round(logs_of(LogType::append, records, 1, payload), {""}, 4));
    ASSERT_NO_FATAL_FAILURE(expect_ranges(stage, records, records == 10'000));
  }
}

/// Writes a snapshot file with root pages of a sequential storage, without the pages of their runs.
class RootPages {
 public:
  /// Writes a root page of `runs` as the next page of the file. `previous`: the root page before
  /// it.
  void add(const std::vector<SequentialRun>& runs, SnapshotPointer previous) {
    const auto page = writer_->next(kStorage);
    ASSERT_TRUE(page) << page.error().message;
    auto* root = reinterpret_cast<SequentialSnapshotRoot*>(*page);
    root->header.type = PageType::sequential;
    root->header.level = 1;
    root->previous = previous.word();
    root->count = runs.size();
    std::ranges::copy(runs, root->runs);
  }
  SnapshotPointer at(uint32_t page) const { return SnapshotPointer::make(1, kCoordinator, page); }
  std::vector<WalkRange> split(uint32_t root_page, uint32_t count) {
    EXPECT_TRUE(writer_->finish());
    EXPECT_TRUE(reader_.open({{1, kCoordinator, "/data", writer_->page_count()}}));
    return split_storage(reader_, {kStorage, StorageType::sequential, 0, 0, at(root_page)}, count);
  }
  SnapshotFiles& reader() { return reader_; }

  static constexpr uint32_t kStorage = 7;

 private:
  static constexpr ClusterUuid kUuid = {1, 2, 3};
  PowerCutFileSystem files_;
  SnapshotFiles reader_{files_, kUuid};
  Result<SnapshotWriter> writer_ =
      SnapshotWriter::create(files_, {"/data", kCoordinator, 1, 5, kUuid});
};

SequentialRun run_of(uint64_t pages) {
  return {SnapshotPointer::make(1, 0, 1).word(), pages, 5, 5, pages};
}

TEST(SplitStorage, PagesOfRunsPastTheBoundBelongToTheLastRange) {
  constexpr uint64_t kMost = kMaxDividedRunPages - 1;  // pages of the largest valid run
  {
    RootPages roots;
    ASSERT_NO_FATAL_FAILURE(roots.add({run_of(kMost), run_of(1)}, {}));
    const std::vector<WalkRange> ranges = roots.split(1, 4);
    ASSERT_EQ(ranges.size(), 4u);
    EXPECT_EQ(ranges[3], (WalkRange{kMaxDividedRunPages / 4 * 3, UINT64_MAX})) << "at the bound";
  }
  RootPages roots;
  ASSERT_NO_FATAL_FAILURE(roots.add({run_of(kMost), run_of(2)}, {}));
  ASSERT_NO_FATAL_FAILURE(roots.add({run_of(kMost), run_of(kMost)}, roots.at(1)));
  const std::vector<WalkRange> ranges = roots.split(2, 4);
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(ranges[1], (WalkRange{kMaxDividedRunPages / 4, kMaxDividedRunPages / 2 - 1}));
  EXPECT_EQ(ranges[3], (WalkRange{kMaxDividedRunPages / 4 * 3, UINT64_MAX})) << "past the bound";
}

TEST(SplitStorage, RunsThatNoFileCanHoldEndTheDivision) {
  for (const SequentialRun& wrong : {run_of(UINT64_MAX / 2), run_of(kMaxDividedRunPages), run_of(0),
                                     SequentialRun{0, 1, 5, 5, 1}}) {
    RootPages roots;
    ASSERT_NO_FATAL_FAILURE(roots.add({wrong}, {}));
    ASSERT_NO_FATAL_FAILURE(roots.add({run_of(640)}, roots.at(1)));
    const std::vector<WalkRange> ranges = roots.split(2, 1000);
    EXPECT_EQ(ranges.size(), 10u) << "ranges of the newer root page alone";
  }
}

TEST(SplitStorage, ACircleOfRootPagesEndsTheDivisionAndTheWalk) {
  for (const uint32_t previous : {1u, 2u}) {
    RootPages roots;
    ASSERT_NO_FATAL_FAILURE(roots.add({run_of(640)}, roots.at(previous)));
    ASSERT_NO_FATAL_FAILURE(roots.add({run_of(640)}, roots.at(1)));
    EXPECT_EQ(roots.split(2, 1000).size(), 10u) << "ranges of the newer root page alone";
    const SnapshotWalkStorage storage = {RootPages::kStorage, StorageType::sequential, 0, 0,
                                         roots.at(2)};
    const auto walk = walk_snapshot(roots.reader(), storage, 5,
                                    [](const WalkedRecord&) { return Result<void>(); });
    ASSERT_FALSE(walk);
    EXPECT_EQ(walk.error().code, ExitCode::corruption);
    EXPECT_TRUE(walk.error().message.contains("page 1 of snapshot 1")) << walk.error().message;
    EXPECT_TRUE(walk.error().message.contains("not a root page")) << walk.error().message;
  }
}

TEST(SplitStorage, ARangeWithinALeafVisitsItsRecordsOnly) {
  SnapshotStage stage(StorageType::array, 100, 8);
  ASSERT_TRUE(stage.round(logs_of(LogType::update, 100, 1, "12345678"), {""}, 4));
  const Visited some = visit(stage, {7, 9});
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some.front().first, big_endian(7));
  EXPECT_EQ(some.back().first, big_endian(9));
}

TEST(SplitStorage, AnEmptyStorageIsOneRangeWithoutRecords) {
  SnapshotStage stage(StorageType::mastertree);
  const std::vector<WalkRange> ranges = split_storage(stage.reader, walked(stage), 8);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_TRUE(ranges.front().is_whole());
  EXPECT_TRUE(visit(stage, ranges.front()).empty());
}

}  // namespace
}  // namespace atolldb::test
