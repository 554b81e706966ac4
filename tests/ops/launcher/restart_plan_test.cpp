// The launcher's plan of restarts: waits, limits and the reasons to stop.
#include "ops/launcher/restart_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace atolldb {
namespace {

using std::chrono::milliseconds;
using Clock = RestartPlan::Clock;

const Clock::time_point kBegin{std::chrono::hours(1)};
constexpr RestartLimits kLimits{.most = 4,
                                .first_wait = milliseconds(100),
                                .longest_wait = milliseconds(300),
                                .steady = milliseconds(5'000)};

Error died(ExitCode code = ExitCode::failed) { return {code, "node0 was killed"}; }

/// Returns the waits after consecutive failures of runs that lasted `lasted`, until the plan gives
/// up.
std::vector<milliseconds> waits(RestartPlan& plan, milliseconds lasted, size_t most) {
  std::vector<milliseconds> all;
  Clock::time_point now = kBegin;
  while (all.size() < most) {
    plan.record_running(now);
    now += lasted;
    Error error = died();
    const auto wait = plan.after_failure(error, now);
    if (!wait) break;
    all.push_back(*wait);
    now += *wait;
  }
  return all;
}

TEST(RestartPlanTest, WaitsDoubleUpToTheLongestAndEndAfterSoManyInSuccession) {
  RestartPlan plan(RestartPolicy::recover, kLimits);
  EXPECT_EQ(
      waits(plan, milliseconds(4'999), 100),
      (std::vector{milliseconds(0), milliseconds(100), milliseconds(200), milliseconds(300)}));
  EXPECT_EQ(plan.count(), 4U);
}

TEST(RestartPlanTest, AfterASteadyRunASuccessionBeginsAgain) {
  RestartPlan plan(RestartPolicy::recover, kLimits);
  EXPECT_EQ(waits(plan, milliseconds(5'000), 20), std::vector(20, milliseconds(0)));
  EXPECT_EQ(plan.count(), 20U);
  EXPECT_EQ(plan.attempt(), 1U);
}

TEST(RestartPlanTest, ARestartThatFailsItselfCountsInTheSuccession) {
  RestartPlan plan(RestartPolicy::recover, kLimits);
  plan.record_running(kBegin);
  for (uint32_t attempt = 1; attempt <= kLimits.most; ++attempt) {
    Error error = died(ExitCode::resources);
    // The duration of the start does not matter, because the cluster never ran.
    EXPECT_TRUE(plan.after_failure(error, kBegin + attempt * std::chrono::hours(1)));
    EXPECT_EQ(error.message, died().message);
  }
  Error error = died(ExitCode::resources);
  EXPECT_FALSE(plan.after_failure(error, kBegin + std::chrono::hours(9)));
  EXPECT_EQ(error.code, ExitCode::resources);
  EXPECT_EQ(error.message,
            "node0 was killed: given up after 4 restarts in succession, none of which lasted 5000 "
            "ms: remove the cause, then run `atoll up`");
}

TEST(RestartPlanTest, CausesThatStayAreNotTriedAgain) {
  for (const ExitCode code : {ExitCode::corruption, ExitCode::durability, ExitCode::disk_full,
                              ExitCode::config, ExitCode::already_running}) {
    RestartPlan plan(RestartPolicy::recover, kLimits);
    plan.record_running(kBegin);
    Error error = died(code);
    EXPECT_FALSE(plan.after_failure(error, kBegin + std::chrono::hours(1)));
    EXPECT_EQ(error.code, code);
    EXPECT_TRUE(
        error.message.ends_with(": not restarted, because a restart does not remove this cause"));
  }
}

TEST(RestartPlanTest, NeitherAFirstStartThatFailsNorAnotherPolicyIsTriedAgain) {
  RestartPlan first(RestartPolicy::recover, kLimits);
  Error error = died();
  EXPECT_FALSE(first.after_failure(error, kBegin));
  RestartPlan never(RestartPolicy::never, kLimits);
  never.record_running(kBegin);
  EXPECT_FALSE(never.after_failure(error, kBegin));
  EXPECT_EQ(error.message, died().message);
}

}  // namespace
}  // namespace atolldb
