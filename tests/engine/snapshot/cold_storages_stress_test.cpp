// The bodies of cold_storages.h on the engine with tiny pages.
#include "tests/engine/snapshot/cold_storages.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

TEST(ColdStoragesStress, TreesAnswerLikeAMapOverSnapshotsAndVolatilePages) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::integers, 1, rounds(8, 100), 300), "");
}

TEST(ColdStoragesStress, TreesAnswerLikeAMapWithLayers) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::layered, 1, rounds(8, 100), 300), "");
}

TEST(ColdStoragesStress, TreesAnswerLikeAMapToSeveralWorkers) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::integers, 3, rounds(6, 100), 300), "");
  EXPECT_EQ(cold_tree_oracle(KeyShape::layered, 3, rounds(6, 100), 300), "");
}

TEST(ColdStoragesStress, ArraysAnswerLikeAMap) {
  EXPECT_EQ(cold_array_oracle(20, rounds(5, 50), 100), "") << "one page";
  EXPECT_EQ(cold_array_oracle(5'000, rounds(8, 100), 300), "") << "two levels";
  EXPECT_EQ(cold_array_oracle(3'000'000, rounds(5, 50), 300), "") << "three levels";
}

TEST(ColdStoragesStress, SequentialScansFindAllInOrder) {
  EXPECT_EQ(cold_sequential_oracle(rounds(8, 200), 100), "");
}

TEST(ColdStoragesStress, AReadOfASnapshotPageFailsWhenThePageIsCopiedUp) {
  EXPECT_EQ(cold_read_then_foreign_copy_up(), "");
}

TEST(ColdStoragesStress, ACopyUpKeepsVersions) { EXPECT_EQ(copy_up_keeps_versions(), ""); }

TEST(ColdStoragesStress, AScanOverColdDataRegistersOnePointer) {
  EXPECT_EQ(cold_scan_registers_one_pointer(), "");
}

}  // namespace
}  // namespace atolldb::test
