#include <gtest/gtest.h>

#include "tests/engine/snapshot/cold_tree.h"

namespace atolldb::test {
namespace {

TEST(ColdTreeStress, AnswersLikeAMapOverSnapshotsAndVolatilePages) {
  EXPECT_EQ(cold_oracle(KeyShape::integers, 1, rounds(8, 100), 300), "");
}

TEST(ColdTreeStress, AnswersLikeAMapWithLayers) {
  EXPECT_EQ(cold_oracle(KeyShape::layered, 1, rounds(8, 100), 300), "");
}

TEST(ColdTreeStress, AnswersLikeAMapToSeveralWorkers) {
  EXPECT_EQ(cold_oracle(KeyShape::integers, 3, rounds(6, 100), 300), "");
  EXPECT_EQ(cold_oracle(KeyShape::layered, 3, rounds(6, 100), 300), "");
}

}  // namespace
}  // namespace atolldb::test
