// Tests of the progress of a recovery: the share that is done, and the estimate of its end.
#include "coordinator/snapshots/recovery_progress.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The four numbers of RecoveryCounts are, in this order: bytes of log to read, bytes read, records
// received by reducers, records composed.

TEST(RecoveryProgress, CountsReadingAndComposingAlike) {
  EXPECT_EQ(recovered_share({}), 0);
  EXPECT_EQ(recovered_share({1000, 500, 10, 0}), 0.25);
  EXPECT_EQ(recovered_share({1000, 1000, 10, 0}), 0.5);
  EXPECT_EQ(recovered_share({1000, 1000, 10, 5}), 0.75);
  EXPECT_EQ(recovered_share({1000, 1000, 10, 10}), 1);
  // A recovery in parts: half of the log is read, and all records of this half are composed.
  EXPECT_EQ(recovered_share({1000, 500, 10, 10}), 0.5);
  // Counters are read one after the other, so one may exceed its total.
  EXPECT_EQ(recovered_share({1000, 1200, 10, 11}), 1);
}

TEST(RecoveryProgress, EstimatesTheEndFromTheTimeUntilNow) {
  EXPECT_FALSE(recovery_eta_seconds({1000, 0, 0, 0}, seconds(5))) << "nothing was read yet";
  EXPECT_FALSE(recovery_eta_seconds({1000, 500, 0, 0}, kLeastEstimateTime - milliseconds(1)));
  EXPECT_EQ(recovery_eta_seconds({1000, 500, 0, 0}, seconds(5)), 15u);
  EXPECT_EQ(recovery_eta_seconds({1000, 1000, 10, 0}, seconds(10)), 10u);
  EXPECT_EQ(recovery_eta_seconds({1000, 1000, 10, 10}, seconds(20)), 0u);
  EXPECT_EQ(recovery_eta_seconds({0, 0, 0, 0}, seconds(20)), std::nullopt);
}

TEST(RecoveryProgress, SaysHowFarItIs) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(recovery_text({8 * kMiB, 4 * kMiB, 10, 0}, seconds(5)),
            "25 % done: 4.0 of 8.0 MiB of log read, 0 of 10 records composed; about 15 s left");
  EXPECT_EQ(recovery_text({8 * kMiB, 0, 0, 0}, seconds(5)),
            "0 % done: 0.0 of 8.0 MiB of log read, 0 of 0 records composed");
}

}  // namespace
}  // namespace atolldb::test
