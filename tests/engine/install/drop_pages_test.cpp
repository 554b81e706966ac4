// The bodies of drop_rules.h and drop_oracles.h.
#include <gtest/gtest.h>

#include "tests/engine/install/drop_oracles.h"

namespace atolldb::test {
namespace {

TEST(DropPages, ArraysReadTheSameWithoutPages) {
  EXPECT_EQ(arrays_read_the_same_without_pages(1'000, 8), "");
  EXPECT_EQ(arrays_read_the_same_without_pages(5'000, 400), "") << "three levels";
}

TEST(DropPages, LaterChangesKeepTheirPage) { EXPECT_EQ(later_changes_keep_their_page(), ""); }

TEST(DropPages, APolicyMayKeepPages) { EXPECT_EQ(pages_are_kept_when_asked(), ""); }

TEST(DropPages, DropsRaiseTheRemovedVersionAbove) {
  EXPECT_EQ(drops_raise_the_removed_version_above(), "");
}

TEST(DropPages, FoundRecordsAreNotReadInDroppedPages) {
  EXPECT_EQ(found_records_are_not_read_in_dropped_pages(), "");
}

TEST(DropPages, WhatWasReadBeforeADropIsVerified) {
  EXPECT_EQ(what_was_read_before_a_drop_is_verified(), "");
}

TEST(DropPages, NothingIsWrittenIntoDroppedPages) {
  EXPECT_EQ(nothing_is_written_into_dropped_pages(false), "");
  EXPECT_EQ(nothing_is_written_into_dropped_pages(true), "") << "increment";
}

TEST(DropPages, ArraysAreRightWhilePagesAreDropped) {
  EXPECT_EQ(arrays_while_pages_are_dropped(6'000, 8, rounds(30, 1'000)), "") << "two levels";
  EXPECT_EQ(arrays_while_pages_are_dropped(6'000, 400, rounds(30, 1'000)), "") << "three levels";
}

TEST(DropPages, HeapsScanTheSameWithoutPages) {
  EXPECT_EQ(heaps_scan_the_same_without_pages(), "");
}

TEST(DropPages, LaterAppendsAreKept) { EXPECT_EQ(later_appends_are_kept(), ""); }

TEST(DropPages, HeapsAreRightWhilePagesAreDropped) {
#ifdef ATOLL_STRESS
  EXPECT_EQ(heaps_while_pages_are_dropped(rounds(8, 60)), "");
#else
  EXPECT_EQ(heaps_while_pages_are_dropped(rounds(30, 300)), "");
#endif
}

}  // namespace
}  // namespace atolldb::test
