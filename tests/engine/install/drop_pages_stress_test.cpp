// The bodies of drop_rules.h and drop_oracles.h on the engine with tiny pages.
#include <gtest/gtest.h>

#include "tests/engine/install/drop_oracles.h"

namespace atolldb::test {
namespace {

TEST(DropPagesStress, ArraysReadTheSameWithoutPages) {
  EXPECT_EQ(arrays_read_the_same_without_pages(1'000, 8), "");
  EXPECT_EQ(arrays_read_the_same_without_pages(5'000, 400), "") << "three levels";
}

TEST(DropPagesStress, LaterChangesKeepTheirPage) { EXPECT_EQ(later_changes_keep_their_page(), ""); }

TEST(DropPagesStress, APolicyMayKeepPages) { EXPECT_EQ(pages_are_kept_when_asked(), ""); }

TEST(DropPagesStress, DropsRaiseTheFloorAbove) { EXPECT_EQ(drops_raise_the_floor_above(), ""); }

TEST(DropPagesStress, FoundRecordsAreNotReadInDroppedPages) {
  EXPECT_EQ(found_records_are_not_read_in_dropped_pages(), "");
}

TEST(DropPagesStress, WhatWasReadBeforeADropIsVerified) {
  EXPECT_EQ(what_was_read_before_a_drop_is_verified(), "");
}

TEST(DropPagesStress, NothingIsWrittenIntoDroppedPages) {
  EXPECT_EQ(nothing_is_written_into_dropped_pages(false), "");
  EXPECT_EQ(nothing_is_written_into_dropped_pages(true), "") << "increment";
}

TEST(DropPagesStress, ArraysAreRightWhilePagesAreDropped) {
  EXPECT_EQ(arrays_while_pages_are_dropped(6'000, 8, rounds(30, 1'000)), "") << "two levels";
  EXPECT_EQ(arrays_while_pages_are_dropped(6'000, 400, rounds(30, 1'000)), "") << "three levels";
}

TEST(DropPagesStress, HeapsScanTheSameWithoutPages) {
  EXPECT_EQ(heaps_scan_the_same_without_pages(), "");
}

TEST(DropPagesStress, LaterAppendsStay) { EXPECT_EQ(later_appends_stay(), ""); }

TEST(DropPagesStress, HeapsAreRightWhilePagesAreDropped) {
  EXPECT_EQ(heaps_while_pages_are_dropped(rounds(8, 60)), "");
}

}  // namespace
}  // namespace atolldb::test
