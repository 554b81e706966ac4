// The throttle of a snapshot job: how much is done, and which events end a pause.
#include "soc/snapshot_job/job_throttle.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

namespace atolldb {
namespace {

class JobThrottleTest : public testing::Test {
 protected:
  /// Pauses on another thread.
  std::future<void> pause() {
    return std::async(std::launch::async, [this] { throttle_.pause(); });
  }
  static bool ends(std::future<void>& pause) {
    return pause.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  }
  /// Waits until the thread of `pause` sleeps, or has not slept.
  static bool is_pausing(std::future<void>& pause) {
    return pause.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready;
  }

  std::atomic<bool> is_over_{false};
  JobThrottle throttle_{[this] { return is_over_.load(std::memory_order_relaxed); }};
};

TEST_F(JobThrottleTest, HalfOfTheWorkIsMappingAndHalfIsComposing) {
  EXPECT_EQ(throttle_.done(), 0.5) << "no log to map";
  throttle_.plan(1000);
  EXPECT_EQ(throttle_.done(), 0);
  throttle_.mapped(500);
  EXPECT_EQ(throttle_.done(), 0.25);
  throttle_.mapped(800);
  EXPECT_EQ(throttle_.done(), 0.5) << "the log was longer than planned";
  throttle_.add_to_compose(100);
  throttle_.add_to_compose(100);
  EXPECT_EQ(throttle_.done(), 0.5);
  throttle_.composed(50);
  EXPECT_EQ(throttle_.done(), 0.625);
  throttle_.composed(500);
  EXPECT_EQ(throttle_.done(), 1);
}

TEST_F(JobThrottleTest, WithoutAGoalAndBehindItNoThreadPauses) {
  throttle_.plan(1000);
  throttle_.mapped(1000);
  throttle_.pause();
  throttle_.set_goal(0.5);
  throttle_.pause();
  throttle_.set_goal(1);
  throttle_.pause();
  EXPECT_EQ(throttle_.paused().count(), 0);
}

TEST_F(JobThrottleTest, AHigherGoalEndsAPauseAtOnce) {
  throttle_.plan(1000);
  throttle_.mapped(600);
  throttle_.set_goal(0.2);
  auto paused = pause();
  EXPECT_TRUE(is_pausing(paused));
  throttle_.set_goal(0.25);
  EXPECT_TRUE(is_pausing(paused)) << "0.3 is done";
  throttle_.set_goal(1);
  EXPECT_TRUE(ends(paused));
  EXPECT_GE(throttle_.paused(), std::chrono::milliseconds(40));
}

TEST_F(JobThrottleTest, TheEndOfTheJobEndsAllPauses) {
  throttle_.plan(1000);
  throttle_.mapped(600);
  throttle_.set_goal(0);
  auto first = pause();
  auto second = pause();
  EXPECT_TRUE(is_pausing(first));
  is_over_.store(true, std::memory_order_relaxed);
  throttle_.wake();
  EXPECT_TRUE(ends(first));
  EXPECT_TRUE(ends(second));
}

TEST_F(JobThrottleTest, AGoalThatIsNotRepeatedExpires) {
  throttle_.plan(1000);
  throttle_.mapped(600);
  throttle_.set_goal(0);
  auto paused = pause();
  EXPECT_TRUE(ends(paused));
  EXPECT_GE(throttle_.paused(), JobThrottle::kGoalLife / 2);
  throttle_.pause();  // does not block
}

}  // namespace
}  // namespace atolldb
