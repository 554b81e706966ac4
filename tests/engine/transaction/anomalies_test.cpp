// The bodies of anomalies.h on the ordinary engine.
#include "tests/engine/transaction/anomalies.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

TEST(Anomalies, AnUpdateIsNotLost) {
  EXPECT_EQ(lost_update(Kind::array), "");
  EXPECT_EQ(lost_update(Kind::tree), "");
}

TEST(Anomalies, WriteSkewAborts) {
  EXPECT_EQ(write_skew(Kind::array), "");
  EXPECT_EQ(write_skew(Kind::tree), "");
}

TEST(Anomalies, ReadSkewAborts) {
  EXPECT_EQ(read_skew(Kind::array), "");
  EXPECT_EQ(read_skew(Kind::tree), "");
}

TEST(Anomalies, AReadOfALockedRecordAborts) {
  EXPECT_EQ(read_of_locked_record(Kind::array), "");
  EXPECT_EQ(read_of_locked_record(Kind::tree), "");
}

TEST(Anomalies, AForeignInsertIntoAScannedRangeAborts) {
  for (const bool forward : {true, false}) {
    EXPECT_EQ(scan_then_foreign_insert(forward, true), "");
    EXPECT_EQ(scan_then_foreign_insert(forward, false), "");
  }
}

TEST(Anomalies, AForeignInsertOfAMissingKeyAborts) {
  EXPECT_EQ(not_found_then_foreign_insert(), "");
}

TEST(Anomalies, TwoInsertsIntoARangeThatBothFoundEmptyAbort) {
  EXPECT_EQ(phantom_write_skew(), "");
}

TEST(Anomalies, ATombstoneThatIsRevivedAbortsItsReaders) {
  EXPECT_EQ(scan_then_tombstone_is_revived(true), "");
  EXPECT_EQ(scan_then_tombstone_is_revived(false), "");
  EXPECT_EQ(look_up_then_tombstone_is_revived(), "");
}

TEST(Anomalies, AnInsertAmidAScanAbortsTheScan) {
  for (const bool forward : {true, false}) {
    EXPECT_EQ(scan_amid_foreign_insert(false, forward), "");
    EXPECT_EQ(scan_amid_foreign_insert(true, forward), "");
  }
}

TEST(Anomalies, ABlindWriteDoesNotBringBackWhatWasErasedMeanwhile) {
  EXPECT_EQ(scan_between_erase_and_blind_write(), "");
}

TEST(Anomalies, AForeignNextLayerInAScannedRangeAborts) {
  EXPECT_EQ(scan_then_foreign_layer(), "");
}

TEST(Anomalies, AnOwnInsertDoesNotHideAForeignOne) {
  EXPECT_EQ(scan_foreign_insert_own_insert(), "");
}

TEST(Anomalies, TheAbsenceOfAPageIsARead) {
  EXPECT_EQ(absence_of_a_page_then_foreign_install(Kind::array), "");
  EXPECT_EQ(absence_of_a_page_then_foreign_install(Kind::tree), "");
}

}  // namespace
}  // namespace atolldb::test
