#include "bench/common/clock.h"

#include <ctime>

namespace atolldb::bench {

void wait_until_ns(uint64_t at_ns) {
  constexpr uint64_t kSpinNs = 100'000;
  if (monotonic_ns() + kSpinNs < at_ns) {
    const uint64_t wake_ns = at_ns - kSpinNs;
    const timespec wake{static_cast<time_t>(wake_ns / 1'000'000'000),
                        static_cast<long>(wake_ns % 1'000'000'000)};
    // If a signal interrupts the sleep, only the spin below takes longer.
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr);
  }
  while (monotonic_ns() < at_ns) {
  }
}

}  // namespace atolldb::bench
