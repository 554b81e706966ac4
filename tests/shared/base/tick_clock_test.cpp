// The clock of the time-stamp counter.
#include "shared/base/tick_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace atolldb {
namespace {

TEST(TickClock, RunsAsFastAsTheClockOfTheKernel) {
  const TickClock clock;
  const uint64_t start_ns = monotonic_ns();
  const uint64_t start = clock.ticks();
  constexpr uint64_t kLongNs = 50'000'000;
  while (monotonic_ns() - start_ns < kLongNs) {
  }
  // The kernel's clock is read first and last, so its time includes that of the counter.
  const uint64_t ticks = clock.ticks() - start;
  const uint64_t most_ns = monotonic_ns() - start_ns;
  EXPECT_GE(clock.to_ns(ticks), kLongNs * 99 / 100);
  EXPECT_LE(clock.to_ns(ticks), most_ns * 101 / 100);
}

TEST(TickClock, ConvertsTimesToTicksAndBack) {
  const TickClock clock;
  for (const uint64_t ns : {1'000U, 1'000'000U, 1'000'000'000U}) {
    EXPECT_NEAR(static_cast<double>(clock.to_ns(clock.from_ns(ns))), static_cast<double>(ns), 2.0);
  }
}

TEST(SpinDelay, TakesWhatItIsAskedForAndCountsWhatItTook) {
  for (const uint64_t ns : {100U, 1'000U, 50'000U}) {
    DelayCounts counts;
    const SpinDelay delay(&counts);
    uint64_t best = UINT64_MAX;  // other load on the machine makes some delays longer
    for (int round = 0; round < 500; ++round) {
      const auto start = std::chrono::steady_clock::now();
      delay.spin(ns);
      const auto took = std::chrono::steady_clock::now() - start;
      best = std::min(best, static_cast<uint64_t>(took.count()));
    }
    EXPECT_GE(counts.taken_ns.load(std::memory_order_relaxed),
              counts.asked_ns.load(std::memory_order_relaxed));
    EXPECT_EQ(counts.asked_ns.load(std::memory_order_relaxed),
              counts.delays.load(std::memory_order_relaxed) * ns);
    // The steady clock is another reader of the counter, whose rate the kernel has calibrated.
    EXPECT_GE(best, ns * 99 / 100);
    EXPECT_LE(best, ns * 101 / 100 + 500);
  }
  DelayCounts none;
  SpinDelay(&none).spin(0);
  EXPECT_EQ(none.delays.load(std::memory_order_relaxed), 0U);
}

}  // namespace
}  // namespace atolldb
