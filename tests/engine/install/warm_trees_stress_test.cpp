// The bodies of warm_trees.h on the engine with tiny pages.
#include "tests/engine/install/warm_trees.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

TEST(WarmTreesStress, AnswerLikeAMapWhileSnapshotsAreInstalledAndPagesDropped) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 1, rounds(8, 400), 300), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 3, rounds(8, 400), 300), "");
}

TEST(WarmTreesStress, AnswerLikeAMapWithLayers) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 1, rounds(8, 400), 300), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 3, rounds(8, 400), 300), "");
}

TEST(WarmTreesStress, AtRestHaveNoVolatilePageButTheRoot) {
  EXPECT_EQ(all_pages_are_dropped(KeyShape::integers), "");
  EXPECT_EQ(all_pages_are_dropped(KeyShape::layered), "");
}

}  // namespace
}  // namespace atolldb::test
