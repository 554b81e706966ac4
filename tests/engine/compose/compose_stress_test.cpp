// The bodies of compose_rules.h and random_fence_maps.h with tiny pages: many levels, many splits.
#include <gtest/gtest.h>

#include "tests/engine/compose/compose_rules.h"
#include "tests/engine/compose/random_captures.h"

namespace atolldb::test {
namespace {

TEST(ComposeStress, TreesOfTinyPagesHoldWhatAMapHolds) {
  tree_rounds_against_a_map(rounds(30, 1000), 400);
}

TEST(ComposeStress, ArraysOfTinyPagesHoldWhatAMapHolds) {
  array_rounds_against_a_map(rounds(30, 1000), 700);
}

TEST(ComposeStress, SequentialStoragesWithManyRootPagesKeepAllAppends) {
  sequential_rounds_keep_all_appends(rounds(30, 300), 60);
}

TEST(CapturedPagesStress, OfAnyRangesMakeASoundSnapshotOfTinyPages) {
  trees_against_a_map<RandomCaptures>(rounds(20, 500), 400);
}

TEST(FenceMapsStress, AnyFenceMapMakesASoundSnapshotOfTinyPages) {
  trees_against_a_map<RandomFenceMaps>(rounds(20, 500), 500);
}

}  // namespace
}  // namespace atolldb::test
