// The bodies of warm_trees.h.
#include "tests/engine/install/warm_trees.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

TEST(WarmTrees, AnswerLikeAMapWhileSnapshotsAreInstalledAndPagesDropped) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 1, rounds(8, 400, 4), 300), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 3, rounds(8, 400, 4), 300), "");
}

TEST(WarmTrees, AnswerLikeAMapWithLayers) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 1, rounds(8, 400, 4), 300), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 3, rounds(8, 400, 4), 300), "");
}

TEST(WarmTrees, AnswerLikeAMapWhileSeveralInstallersWork) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 2, rounds(8, 400, 4), 300, 3), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 2, rounds(8, 400, 4), 300, 3), "");
}

TEST(WarmTrees, AnswerLikeAMapWithADeltaTree) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 1, rounds(8, 400, 4), 300, 1, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 3, rounds(8, 400, 4), 300, 1, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 1, rounds(8, 400, 4), 300, 1, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 3, rounds(8, 400, 4), 300, 1, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 2, rounds(8, 400, 4), 300, 3, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 2, rounds(8, 400, 4), 300, 3, true), "");
}

TEST(WarmTrees, AnswerLikeAMapWhileLentPagesComeAndGo) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 3, rounds(8, 400, 4), 300, 1, false, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::integers, 3, rounds(8, 400, 4), 300, 1, true, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::layered, 2, rounds(8, 400, 4), 300, 3, true, true), "");
}

TEST(WarmTrees, AnswerLikeAMapAsHashStorages) {
  EXPECT_EQ(warm_tree_oracle(KeyShape::hashed, 3, rounds(8, 400, 4), 300), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::hashed, 2, rounds(8, 400, 4), 300, 3, true), "");
  EXPECT_EQ(warm_tree_oracle(KeyShape::hashed, 3, rounds(8, 400, 4), 300, 1, true, true), "");
}

TEST(WarmTrees, AtRestHaveNoVolatilePageButTheRoot) {
  EXPECT_EQ(all_pages_are_dropped(KeyShape::integers), "");
  EXPECT_EQ(all_pages_are_dropped(KeyShape::layered), "");
  EXPECT_EQ(all_pages_are_dropped(KeyShape::hashed), "");
  EXPECT_EQ(all_pages_are_dropped(KeyShape::integers, /*captures=*/true), "");
  EXPECT_EQ(all_pages_are_dropped(KeyShape::layered, /*captures=*/true), "");
}

}  // namespace
}  // namespace atolldb::test
