// Ranges of a storage: the walks of all ranges visit each record once, in the order of one walk.
#include <gtest/gtest.h>

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

/// `is_large`: the storage has more than 64 times kMinPagesPerRange leaf pages.
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
