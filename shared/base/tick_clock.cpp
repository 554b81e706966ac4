#include "shared/base/tick_clock.h"

#include <cpuid.h>
#include <immintrin.h>

#include <ctime>

#include "shared/base/check.h"

namespace atolldb {

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

TickClock::TickClock() : has_counter_(has_invariant_counter()) {
  if (!has_counter_) return;
  constexpr uint64_t kMeasureNs = 10'000'000;
  const uint64_t start_ns = monotonic_ns();
  const uint64_t start = __builtin_ia32_rdtsc();
  uint64_t end_ns = start_ns;
  while (end_ns < start_ns + kMeasureNs) end_ns = monotonic_ns();
  const uint64_t end = __builtin_ia32_rdtsc();
  CHECK(end > start);
  ns_per_tick_ = static_cast<double>(end_ns - start_ns) / static_cast<double>(end - start);
  CHECK(ns_per_tick_ > 0);
}

void SpinDelay::spin(uint64_t ns) const {
  CHECK(ns <= kMaxNs);
  if (ns == 0) return;
  const uint64_t start = clock_.ticks();
  const uint64_t wanted = clock_.from_ns(ns) + 1;  // `from_ns` rounds down
  uint64_t passed = 0;
  while ((passed = clock_.ticks() - start) < wanted) _mm_pause();
  CHECK(passed >= wanted);
  if (counts_ == nullptr) return;
  counts_->delays.fetch_add(1, std::memory_order_relaxed);
  counts_->asked_ns.fetch_add(ns, std::memory_order_relaxed);
  counts_->taken_ns.fetch_add(clock_.to_ns(passed), std::memory_order_relaxed);
}

}  // namespace atolldb
