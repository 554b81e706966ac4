// Absent keys of delta trees, which commits search again (R108).
#include <gtest/gtest.h>

#include "tests/engine/install/absence_rules.h"

namespace atolldb::test {
namespace {

TEST(Absences, ReadersIgnoreWritesOfNeighbours) {
  EXPECT_EQ(neighbours_abort_no_reader(false), "");
}
TEST(Absences, ReadersIgnoreOwnWritesOfNeighbours) {
  EXPECT_EQ(neighbours_abort_no_reader(true), "");
}
TEST(Absences, OwnRecordsAreNoChanges) {
  for (const bool is_late : {false, true}) EXPECT_EQ(own_records_are_no_changes(is_late), "");
}
TEST(Absences, AreVerified) {
  for (const bool is_long : {false, true}) {
    for (const bool splits : {false, true}) {
      EXPECT_EQ(written_keys_are_no_absences(is_long, splits), "") << is_long << splits;
    }
  }
  EXPECT_EQ(long_keys_that_are_being_written_are_no_absences(), "");
}
TEST(Absences, EndWithADrainOfLaterCommits) { EXPECT_EQ(drained_keys_are_no_absences(), ""); }

/// A drain of records that were committed before the reader began is no change.
TEST(Absences, SurviveADrainOfEarlierCommits) {
  AbsenceTree test;
  Problem problem;
  ASSERT_EQ(test.prepare_large(), "");
  ASSERT_EQ(test.write(1, 3, "new"), Status::ok);
  test.warm.cluster.worker(1).context->leave();
  ASSERT_EQ(test.take_beside_readers({{3, "new"}}), "");
  ASSERT_EQ(test.write(1, 20'000, "new"), Status::ok);  // of another pointer
  test.begin_and_read(problem, big_endian(20'001), "old");
  ASSERT_EQ(test.warm.install(keep_all), "");
  EXPECT_EQ(test.warm.report.drained, 1u);
  EXPECT_EQ(test.reader().commit(), Status::ok);
  EXPECT_EQ(problem.text(), "");
}

/// Scans, long keys and keys without room rely on the page word alone.
TEST(Absences, OfScansAndOfLongKeysEndWithAnyChange) {
  AbsenceTree test;
  Problem problem;
  ASSERT_EQ(test.prepare_marks(), "");
  ASSERT_EQ(test.reader().begin(), Status::ok);
  EXPECT_EQ(test.scan_in(test.reader(), 5, 8), "old old old ");
  ASSERT_EQ(test.write(1, 10, "new"), Status::ok);
  EXPECT_EQ(test.reader().commit(), Status::phantom);

  const std::string key = test.long_key(std::string(AbsenceEntry::kMaxKeyBytes, 'x'));
  test.begin_and_read(problem, key, "nothing");
  EXPECT_EQ(test.reader().absence_set_size(), 0u);
  ASSERT_EQ(test.write(1, 11, "new"), Status::ok);
  EXPECT_EQ(test.reader().commit(), Status::phantom);

  ASSERT_EQ(test.reader().begin(), Status::ok);
  for (uint32_t i = 0; i <= Transaction::kMaxAbsences; ++i) {
    test.read_again(problem, big_endian(ColdTree::kRecords + i), "nothing");
  }
  EXPECT_EQ(test.reader().absence_set_size(), Transaction::kMaxAbsences);
  EXPECT_EQ(test.reader().page_version_set_size(), 1u);
  ASSERT_EQ(test.write(1, 12, "new"), Status::ok);
  EXPECT_EQ(test.reader().commit(), Status::phantom);
  EXPECT_EQ(problem.text(), "");
}

}  // namespace
}  // namespace atolldb::test
