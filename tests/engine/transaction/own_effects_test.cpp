// The bodies of own_effects.h on the ordinary engine.
#include "tests/engine/transaction/own_effects.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

TEST(OwnEffects, LookUpsSeeOwnWrites) { EXPECT_EQ(look_ups_see_own_writes(), ""); }

TEST(OwnEffects, CursorsSeeOwnWritesAlsoThoseMadeDuringTheScan) {
  EXPECT_EQ(cursors_see_own_writes(true), "");
  EXPECT_EQ(cursors_see_own_writes(false), "");
}

TEST(OwnEffects, LookUpThenInsertDoesNotAbortItself) {
  EXPECT_EQ(look_up_then_insert_commits(1), "");
  EXPECT_EQ(look_up_then_insert_commits(20), "");
}

TEST(OwnEffects, FindingARecordDeadThenInsertingItDoesNotAbortItself) {
  EXPECT_EQ(tombstone_then_own_insert_commits(), "");
}

TEST(OwnEffects, LookUpThenInsertSurvivesItsOwnSplits) {
  EXPECT_EQ(look_up_then_insert_commits(2000), "");
}

TEST(OwnEffects, VidsGrowPerKey) {
  EXPECT_EQ(vids_grow_per_key(Kind::array), "");
  EXPECT_EQ(vids_grow_per_key(Kind::tree), "");
}

TEST(OwnEffects, UsedUpOrdinalsWaitForTheNextEpoch) {
  EXPECT_EQ(used_up_ordinals_wait_for_the_next_epoch(), "");
}

TEST(OwnEffects, AUserAbortIsVerified) { EXPECT_EQ(user_abort_after_a_foreign_write(), ""); }

TEST(OwnEffects, AUserAbortTrustsNoRecordThatAnotherHasLocked) {
  EXPECT_EQ(user_abort_of_a_record_locked_by_another(), "");
}

TEST(OwnEffects, ReplacedPagesWaitForTheirReaders) {
  EXPECT_EQ(replaced_pages_wait_for_their_readers(), "");
}

}  // namespace
}  // namespace atolldb::test
