// Power cuts and kills at any change of any file. PowerCut.Is... and rows of kRules in
// tests/engine/rules_mutant_test.cpp prove that these checks detect faults.
#include <gtest/gtest.h>

#include "tests/engine/recovery/power_cut_logs.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

TEST(PowerCut, LosesNothingThatWasAcknowledgedAndLeavesNoHalfEpoch) {
  EXPECT_EQ(cut_logs(seed(), rounds(100, 2000)), "");
}

TEST(PowerCut, IsSeenToLoseDataWhenSyncsDoNothing) {
  EXPECT_NE(cut_logs(1, 100, {.skips_sync = true}), "");
}

TEST(PowerCut, IsSeenToLoseDataWhenMarkersAreWrittenBeforeTheirData) {
  EXPECT_NE(cut_logs(1, 100, {.markers_before_data = true}), "");
}

}  // namespace
}  // namespace atolldb::test
