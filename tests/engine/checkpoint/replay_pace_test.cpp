// Replays in step: a process waits while it is ahead of the limit, and not longer.
#include "engine/checkpoint/replay_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace atolldb {
namespace {

TEST(ReplayPace, WithoutALimitNothingWaits) {
  ReplayPace pace;
  pace.add(uint64_t{1} << 60);
  EXPECT_FALSE(pace.is_ahead());
  pace.wait();
}

TEST(ReplayPace, AProcessIsAheadPastItsLimitOnly) {
  ReplayPace pace;
  pace.set_limit(100);
  pace.add(60);
  pace.add(40);
  EXPECT_FALSE(pace.is_ahead());
  pace.wait();
  pace.add(1);
  EXPECT_TRUE(pace.is_ahead());
  pace.set_limit(101);
  EXPECT_FALSE(pace.is_ahead());
  pace.wait();
}

TEST(ReplayPace, AHigherLimitEndsTheWaitsOfAllThreads) {
  ReplayPace pace;
  pace.add(200);
  // Valid for a day, so only the higher limit can end the waits in time.
  pace.set_limit(100, ReplayPace::Clock::now() + std::chrono::hours(24));
  std::jthread first([&] { pace.wait(); });
  std::jthread second([&] { pace.wait(); });
  pace.set_limit(150);
  EXPECT_TRUE(pace.is_ahead());
  pace.set_limit(200);
  first.join();
  second.join();
  EXPECT_FALSE(pace.is_ahead());
}

TEST(ReplayPace, ALimitThatIsNotRenewedEndsToCount) {
  ReplayPace pace;
  pace.add(200);
  pace.set_limit(100, ReplayPace::Clock::now() - ReplayPace::kValid);
  EXPECT_TRUE(pace.is_ahead());
  pace.wait();
}

}  // namespace
}  // namespace atolldb
