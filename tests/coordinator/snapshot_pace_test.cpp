// The pace of snapshot jobs: when they pause, and when they end. The clock is a number.
#include "coordinator/snapshots/snapshot_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class SnapshotPaceTest : public testing::Test {
 protected:
  SnapshotPaceTest() {
    config_.interval = std::chrono::seconds(100);
    config_.log_volume = 4096 * kMiB;
    begin_.log_bytes = 7000 * kMiB;
    begin_.spare_pages = 0.4;
  }
  SnapshotPace pace() const { return {config_, job_, begin_}; }
  /// Returns the readings `elapsed` seconds after the begin, if nothing else has changed.
  PaceReadings after(double elapsed) const {
    PaceReadings readings = begin_;
    readings.now += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(elapsed));
    return readings;
  }

  Config::Gleaner config_;
  PacedJob job_ = {.log_bytes = 4096 * kMiB, .nodes = 2, .threads = 4, .cpus = 8};
  PaceReadings begin_;
};

TEST_F(SnapshotPaceTest, TheGoalGrowsEvenlyAndIsCompleteBeforeTheIntervalEnds) {
  SnapshotPace pace = this->pace();
  EXPECT_EQ(pace.goal(after(0)), 0);
  EXPECT_NEAR(pace.goal(after(7)), 0.1, 1e-9);
  EXPECT_NEAR(pace.goal(after(35)), 0.5, 1e-9);
  EXPECT_EQ(pace.goal(after(100 * kPacedPart)), 1);
  EXPECT_EQ(pace.goal(after(1000)), 1);
}

TEST_F(SnapshotPaceTest, AJobOfLittleLogTakesNoLongerThanTheSlowestRateNeeds) {
  job_.log_bytes = 32 * kMiB;
  SnapshotPace pace = this->pace();
  EXPECT_NEAR(pace.goal(after(0.5)), 0.25, 1e-9);
  EXPECT_EQ(pace.goal(after(2)), 1);
  job_.log_bytes = 0;
  EXPECT_EQ(this->pace().goal(after(0.001)), 1);
}

TEST_F(SnapshotPaceTest, TheGoalFollowsTheLogUntilItsVolume) {
  SnapshotPace pace = this->pace();
  PaceReadings now = after(1);
  now.log_bytes += config_.log_volume * 35 / 100;
  EXPECT_NEAR(pace.goal(now), 0.5, 1e-6);
  now.log_bytes = begin_.log_bytes + config_.log_volume * 7 / 10;
  EXPECT_NEAR(pace.goal(now), 1, 1e-6);
}

TEST_F(SnapshotPaceTest, TheGoalFollowsThePoolUntilItIsLow) {
  SnapshotPace pace = this->pace();
  PaceReadings now = after(1);
  now.spare_pages = 0.4 * (1 - 0.35);
  EXPECT_NEAR(pace.goal(now), 0.5, 1e-6);
  now.spare_pages = 0;
  EXPECT_EQ(pace.goal(now), 1);
  now.spare_pages = 0.5;  // pages were freed meanwhile
  EXPECT_NEAR(pace.goal(now), 0.01 / kPacedPart, 1e-6);
  begin_.spare_pages = -0.01;
  EXPECT_EQ(this->pace().goal(after(0)), 1) << "the pool was low when the job began";
}

TEST_F(SnapshotPaceTest, AnUrgentJobDoesNotPauseAndMayPauseAgainLater) {
  SnapshotPace pace = this->pace();
  PaceReadings now = after(7);
  now.is_urgent = true;
  EXPECT_EQ(pace.goal(now), 1);
  now.is_urgent = false;
  EXPECT_NEAR(pace.goal(now), 0.1, 1e-9);
}

TEST_F(SnapshotPaceTest, AJobWithMoreThanTwoVolumesOfLogDoesNotPause) {
  job_.log_bytes = 2 * config_.log_volume;
  EXPECT_EQ(pace().goal(after(0)), 0);
  ++job_.log_bytes;
  EXPECT_EQ(pace().goal(after(0)), 1);
}

TEST_F(SnapshotPaceTest, AJobUsesIdleProcessorsUntilAlmostNoneIsIdle) {
  SnapshotPace pace = this->pace();
  const auto goal = [&](double idle) {
    PaceReadings now = after(7);
    now.idle_cpus = idle;
    return pace.goal(now);
  };
  EXPECT_LT(goal(3.9), 1) << "four threads would take processors of workers";
  EXPECT_EQ(goal(4), 1);
  EXPECT_EQ(goal(0.5), 1) << "the job's own threads took the others";
  EXPECT_LT(goal(0.4), 1);
  EXPECT_LT(goal(0.6), 1) << "it has stopped to use them";
}

TEST_F(SnapshotPaceTest, AJobWithMoreThreadsThanProcessorsUsesThemIfAlmostAllAreIdle) {
  job_.cpus = 2;
  SnapshotPace pace = this->pace();
  PaceReadings now = after(7);
  now.idle_cpus = 1.7;
  EXPECT_LT(pace.goal(now), 1);
  now.idle_cpus = 1.8;
  EXPECT_EQ(pace.goal(now), 1);
  now.idle_cpus = 0.4;
  EXPECT_LT(pace.goal(now), 1);
}

TEST_F(SnapshotPaceTest, AJobWithoutWatchedProcessorsIsPaced) {
  job_.cpus = 0;
  EXPECT_NEAR(pace().goal(after(7)), 0.1, 1e-9);
}

TEST_F(SnapshotPaceTest, AJobWithLittleRoomDoesNotPause) {
  job_.log_bytes = 1024 * kMiB;
  const auto goal = [&](uint64_t room_bytes) {
    PaceReadings now = after(7);
    now.room_bytes = room_bytes;
    return pace().goal(now);
  };
  EXPECT_LT(goal(4096 * kMiB), 1) << "twice the log of two nodes";
  EXPECT_EQ(goal(4096 * kMiB - 1), 1);
  EXPECT_EQ(goal(0), 1);
  job_.log_bytes = config_.log_volume = 1024 * 1024 * kMiB;
  EXPECT_LT(goal(16 * 1024 * kMiB), 1) << "a large log needs no more";
  EXPECT_EQ(goal(16 * 1024 * kMiB - 1), 1);
  job_.log_bytes = 0;
  EXPECT_LT(pace().goal(after(0)), 1);
}

/// Simulates a job that works at a fixed speed while it is behind the goal, and stalls now and
/// then. If that speed suffices, the job ends in the paced part of the interval. Its stalls may
/// delay the end by the time that they take.
TEST_F(SnapshotPaceTest, AJobEndsInTimeWithStallsAndLoadsOfAllKinds) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(200, 20'000); ++round) {
    std::mt19937_64 random(first + round);
    const auto between = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const double needed = between(1, 40);         // seconds of work without a pause
    const double log_per_s = between(0, 40e6);    // the log volume is due in 107 s or later
    const double pages_per_s = between(0, 4e-3);  // the pool is low in 100 s or later
    SnapshotPace pace = this->pace();
    constexpr double kStep = 0.05;
    double done = 0;
    double now = 0;
    double worked = 0;
    double stalled = 0;
    for (; done < 1; now += kStep) {
      PaceReadings readings = after(now);
      readings.log_bytes += static_cast<uint64_t>(log_per_s * now);
      readings.spare_pages -= pages_per_s * now;
      if (random() % 20 == 0) {
        stalled += kStep;  // the processors do something else
        continue;
      }
      if (done > pace.goal(readings)) continue;
      done += kStep / needed;
      worked += kStep;
    }
    const double limit = 100 * kPacedPart + stalled + 1;
    ASSERT_LT(now, limit) << "ATOLL_SEED=" << first + round;
    ASSERT_NEAR(worked, needed, 2 * kStep) << "ATOLL_SEED=" << first + round;
  }
}

}  // namespace
}  // namespace atolldb::test
