// When a snapshot job yields to workers and loggers: only while nothing waits for its end.
#include "coordinator/snapshots/job_pressure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace atolldb {
namespace {

constexpr uint64_t kVolume = 1'000;

TEST(JobPressureTest, AJobYieldsUpToTheLimitOfTheBacklogAndNotPastIt) {
  JobPressure pressure{.log_volume = kVolume};
  EXPECT_TRUE(may_yield(pressure));
  pressure.log_bytes = kMaxBacklogVolumes * kVolume;
  EXPECT_TRUE(may_yield(pressure));
  ++pressure.log_bytes;
  EXPECT_FALSE(may_yield(pressure));
}

TEST(JobPressureTest, AnUrgentJobNeverYields) {
  EXPECT_FALSE(may_yield({.lacks_pages = true, .log_volume = kVolume}));
  EXPECT_FALSE(may_yield({.lacks_log_files = true, .log_volume = kVolume}));
  EXPECT_FALSE(may_yield({.is_awaited = true, .log_volume = kVolume}));
}

/// A job that yields reads at a tenth of the rate at which workers write. Urgent jobs read at twice
/// that rate. The backlog must not grow without bound.
TEST(JobPressureTest, TheBacklogOfABusyMachineStaysBounded) {
  uint64_t backlog = kVolume;
  for (int job = 0; job < 100; ++job) {
    const bool yields = may_yield({.log_bytes = backlog, .log_volume = kVolume});
    backlog = std::max(kVolume, yields ? backlog * 10 : backlog / 2);
    EXPECT_LE(backlog, 10 * kMaxBacklogVolumes * kVolume);
  }
}

}  // namespace
}  // namespace atolldb
