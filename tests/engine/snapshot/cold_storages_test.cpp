// The bodies of cold_storages.h.
#include "tests/engine/snapshot/cold_storages.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

TEST(ColdStorages, TreesAnswerLikeAMapOverSnapshotsAndVolatilePages) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::integers, 1, rounds(8, 100), 300), "");
}

TEST(ColdStorages, TreesAnswerLikeAMapWithLayers) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::layered, 1, rounds(8, 100), 300), "");
}

TEST(ColdStorages, TreesAnswerLikeAMapToSeveralWorkers) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::integers, 3, rounds(6, 100), 300), "");
  EXPECT_EQ(cold_tree_oracle(KeyShape::layered, 3, rounds(6, 100), 300), "");
}

TEST(ColdStorages, TreesAnswerLikeAMapWithADeltaTree) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::integers, 1, rounds(6, 100), 300, true), "");
  EXPECT_EQ(cold_tree_oracle(KeyShape::layered, 3, rounds(6, 100), 300, true), "");
}

TEST(ColdStorages, HashStoragesAnswerLikeAMap) {
  EXPECT_EQ(cold_tree_oracle(KeyShape::hashed, 1, rounds(6, 100), 300), "");
  EXPECT_EQ(cold_tree_oracle(KeyShape::hashed, 3, rounds(6, 100), 300, true), "");
}

TEST(ColdStorages, ArraysAnswerLikeAMap) {
  EXPECT_EQ(cold_array_oracle(20, rounds(5, 50), 100), "") << "one page";
  EXPECT_EQ(cold_array_oracle(5'000, rounds(8, 100), 300), "") << "two levels";
  EXPECT_EQ(cold_array_oracle(3'000'000, rounds(5, 50), 300), "") << "three levels";
}

TEST(ColdStorages, SequentialScansFindAllInOrder) {
  EXPECT_EQ(cold_sequential_oracle(rounds(8, 200), 100), "");
}

TEST(ColdStorages, AReadOfASnapshotPageFailsWhenThePageIsCopiedUp) {
  EXPECT_EQ(cold_read_then_foreign_copy_up(), "");
}

TEST(ColdStorages, ACopyUpKeepsVersions) { EXPECT_EQ(copy_up_keeps_versions(), ""); }

TEST(ColdStorages, AnInsertFitsInACopiedPage) { EXPECT_EQ(an_insert_fits_in_a_copied_page(), ""); }

TEST(ColdStorages, AScanOverColdDataRegistersOnePointer) {
  EXPECT_EQ(cold_scan_registers_one_pointer(), "");
}

#ifndef ATOLL_STRESS
TEST(ColdStorages, AScanContinuesThoughItsPageWasEvicted) {
  EXPECT_EQ(a_scan_continues_though_its_page_was_evicted(), "");
}
#endif

}  // namespace
}  // namespace atolldb::test
