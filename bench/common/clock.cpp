#include "bench/common/clock.h"

#include <cpuid.h>

#include <ctime>

namespace atolldb::bench {

namespace {

bool has_invariant_counter() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kPowerLeaf = 0x80000007;
  constexpr unsigned kInvariantBit = 1u << 8;
  return __get_cpuid(kPowerLeaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantBit) != 0;
}

}  // namespace

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

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

TickClock::TickClock() : has_counter_(has_invariant_counter()) {
  if (!has_counter_) return;
  constexpr uint64_t kMeasureNs = 10'000'000;
  const uint64_t start_ns = monotonic_ns();
  const uint64_t start = __builtin_ia32_rdtsc();
  uint64_t end_ns = start_ns;
  while (end_ns < start_ns + kMeasureNs) end_ns = monotonic_ns();
  const uint64_t end = __builtin_ia32_rdtsc();
  ns_per_tick_ = static_cast<double>(end_ns - start_ns) / static_cast<double>(end - start);
}

}  // namespace atolldb::bench
