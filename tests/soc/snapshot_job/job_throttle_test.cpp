// The throttle of a snapshot job: how much is done, and which events end a pause.
#include "soc/snapshot_job/job_throttle.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

namespace atolldb {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// Times so long that only the event under test can end a pause in time.
constexpr JobThrottleTimes kHours = {.goal_life = hours(24), .max_sleep = hours(24)};

class JobThrottleTest : public testing::Test {
 protected:
  /// Pauses on another thread. Returns when the throttle counts time of a pause, or the pause has
  /// ended.
  std::future<void> pause(JobThrottle& throttle) {
    const auto paused = throttle.paused();
    auto pause = std::async(std::launch::async, [&throttle] { throttle.pause(); });
    while (throttle.paused() == paused && !has_ended(pause)) std::this_thread::yield();
    return pause;
  }
  static bool has_ended(std::future<void>& pause) {
    return pause.wait_for(milliseconds(1)) == std::future_status::ready;
  }
  /// Waits for the end of a pause. If the pause does not end, ends it by a new goal, and returns
  /// false.
  static bool ends(std::future<void>& pause, JobThrottle& throttle) {
    if (pause.wait_for(std::chrono::seconds(30)) == std::future_status::ready) return true;
    throttle.set_goal(1);
    return false;
  }
  std::function<bool()> is_over() {
    return [this] { return is_over_.load(std::memory_order_relaxed); };
  }

  std::atomic<bool> is_over_{false};
  JobThrottle throttle_{is_over(), kHours};
};

TEST_F(JobThrottleTest, HalfOfTheWorkIsMappingAndHalfIsComposing) {
  throttle_.plan(1000, 2);
  EXPECT_EQ(throttle_.done(), 0);
  throttle_.mapped(500);
  EXPECT_EQ(throttle_.done(), 0.25);
  throttle_.mapped(800);
  EXPECT_EQ(throttle_.done(), 0.5) << "the log was longer than planned";
  throttle_.add_to_compose(100);
  EXPECT_EQ(throttle_.done(), 0.5);
  throttle_.composed(50);
  EXPECT_EQ(throttle_.done(), 0.625) << "the other reducer counts like this one";
  throttle_.add_to_compose(400);
  EXPECT_EQ(throttle_.done(), 0.55);
  throttle_.composed(450);
  EXPECT_EQ(throttle_.done(), 1);
  throttle_.composed(50);
  EXPECT_EQ(throttle_.done(), 1);
}

TEST_F(JobThrottleTest, NothingIsDoneWhileTheWorkIsUnknown) {
  EXPECT_EQ(throttle_.done(), 0) << "no plan";
  throttle_.plan(0, 2);
  throttle_.mapped(1000);
  EXPECT_EQ(throttle_.done(), 0) << "no log was planned";
  throttle_.add_to_compose(0);
  EXPECT_EQ(throttle_.done(), 0.5) << "mapping has ended";
  throttle_.add_to_compose(100);
  throttle_.composed(100);
  EXPECT_EQ(throttle_.done(), 1);
}

TEST_F(JobThrottleTest, WithoutAGoalAndBehindItNoThreadPauses) {
  throttle_.plan(1000, 1);
  throttle_.mapped(1000);
  throttle_.pause();
  throttle_.set_goal(0.5);
  throttle_.pause();
  throttle_.set_goal(1);
  throttle_.pause();
  EXPECT_EQ(throttle_.paused().count(), 0);
}

TEST_F(JobThrottleTest, OnlyAGoalThatIsHighEnoughEndsAPause) {
  throttle_.plan(1000, 1);
  throttle_.mapped(600);
  throttle_.set_goal(0.2);
  auto paused = pause(throttle_);
  throttle_.set_goal(0.25);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(has_ended(paused)) << "0.3 is done";
  throttle_.set_goal(0.3);
  EXPECT_TRUE(ends(paused, throttle_));
}

TEST_F(JobThrottleTest, TheEndOfTheJobEndsAllPauses) {
  throttle_.plan(1000, 1);
  throttle_.mapped(600);
  throttle_.set_goal(0);
  auto first = pause(throttle_);
  auto second = pause(throttle_);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(has_ended(first));
  EXPECT_FALSE(has_ended(second));
  is_over_.store(true, std::memory_order_relaxed);
  throttle_.wake();
  EXPECT_TRUE(ends(first, throttle_));
  EXPECT_TRUE(ends(second, throttle_));
}

TEST_F(JobThrottleTest, AnEndOfTheJobThatWakesNoThreadIsNoticed) {
  JobThrottle throttle(is_over(), {.goal_life = hours(24), .max_sleep = milliseconds(10)});
  throttle.plan(1000, 1);
  throttle.mapped(600);
  throttle.set_goal(0);
  auto paused = pause(throttle);
  is_over_.store(true, std::memory_order_relaxed);
  EXPECT_TRUE(ends(paused, throttle));
}

TEST_F(JobThrottleTest, AGoalThatIsNotRepeatedExpires) {
  constexpr milliseconds kLife{200};
  JobThrottle throttle(is_over(), {.goal_life = kLife, .max_sleep = hours(24)});
  throttle.plan(1000, 1);
  throttle.mapped(600);
  const auto begun = JobThrottle::Clock::now();
  throttle.set_goal(0);
  throttle.pause();
  EXPECT_GE(JobThrottle::Clock::now() - begun, kLife);
  const auto paused = throttle.paused();
  throttle.pause();
  EXPECT_EQ(throttle.paused(), paused) << "without a goal there are no pauses";
}

TEST_F(JobThrottleTest, PausesOfSeveralThreadsAddUpAndCountWhileTheyLast) {
  throttle_.plan(1000, 1);
  throttle_.mapped(600);
  throttle_.set_goal(0);
  const auto begun = JobThrottle::Clock::now();
  auto first = pause(throttle_);
  auto second = pause(throttle_);
  // The sum of both pauses is in whole microseconds. Once the second thread pauses, the sum grows
  // faster than the time, but never more than twice as fast.
  const auto limit = begun + std::chrono::seconds(30);
  bool is_fast = false;
  while (!is_fast && JobThrottle::Clock::now() < limit) {
    const auto from = JobThrottle::Clock::now();
    const auto before = throttle_.paused();
    const auto after_first = JobThrottle::Clock::now();
    std::this_thread::sleep_for(milliseconds(5));
    const auto last = JobThrottle::Clock::now();
    const auto grown = throttle_.paused() - before;
    EXPECT_LE(grown, 2 * (JobThrottle::Clock::now() - from) + std::chrono::microseconds(1));
    is_fast = 2 * grown > 3 * (last - after_first);
  }
  EXPECT_TRUE(is_fast) << "the pauses of two threads do not add up";
  const auto later = throttle_.paused();
  throttle_.set_goal(1);
  EXPECT_TRUE(ends(first, throttle_));
  EXPECT_TRUE(ends(second, throttle_));
  const auto total = throttle_.paused();
  EXPECT_GE(total, later);
  EXPECT_LE(total, 2 * (JobThrottle::Clock::now() - begun) + std::chrono::microseconds(1));
  EXPECT_EQ(throttle_.paused(), total) << "no thread pauses";
}

}  // namespace
}  // namespace atolldb
