// The bodies of compose_rules.h and random_fence_maps.h with ordinary pages.
#include <gtest/gtest.h>

#include "tests/engine/compose/compose_rules.h"
#include "tests/engine/compose/random_captures.h"

namespace atolldb::test {
namespace {

TEST(Compose, TreesHoldWhatAMapHolds) { tree_rounds_against_a_map(rounds(12, 500), 3000); }

TEST(Compose, ArraysHoldWhatAMapHolds) { array_rounds_against_a_map(rounds(10, 300), 20'000); }

TEST(Compose, SequentialStoragesKeepAllAppends) {
  sequential_rounds_keep_all_appends(rounds(10, 100), 5000);
}

TEST(Compose, ARewriteOfASequentialStorageCountsThePagesThatItReads) {
  SnapshotStage stage(StorageType::sequential);
  std::vector<GleanedLog> logs;
  for (uint32_t i = 0; i < 500; ++i) {
    const std::string key = big_endian(3) + big_endian(i);
    logs.push_back({LogType::append, key, 0, std::string(1000, 'x'), Vid::make(3, i + 1)});
  }
  ASSERT_TRUE(stage.round(logs, {""}, 4));
  EXPECT_EQ(stage.composed.at(0).pages_read, 0u) << "appends need no page of the base";
  const uint64_t pages = stage.composed.at(0).pages_written;
  ASSERT_GT(pages, 100u);
  stage.rewrites = true;
  ASSERT_TRUE(stage.round({}, {""}, 6));
  EXPECT_EQ(stage.composed.at(0).pages_written, pages);
  EXPECT_EQ(stage.composed.at(0).pages_read, pages + 1) << "all pages and their root";
}

TEST(CapturedPages, OfAnyRangesMakeASoundSnapshot) {
  trees_against_a_map<RandomCaptures>(rounds(10, 300), 2000);
}

TEST(FenceMaps, AnyFenceMapMakesASoundSnapshot) {
  trees_against_a_map<RandomFenceMaps>(rounds(20, 500), 500);
}

}  // namespace
}  // namespace atolldb::test
