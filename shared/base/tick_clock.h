// A clock that is cheap enough to read around every transaction, and delays by that clock. It is
// the processor's time-stamp counter if that is invariant, otherwise the kernel's monotonic clock.
// Ticks of the kernel's clock are nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

/// Returns CLOCK_MONOTONIC, which is comparable between the processes of a machine.
uint64_t monotonic_ns();

class TickClock {
 public:
  /// Measures the counter's frequency for 10 ms.
  TickClock();

  uint64_t ticks() const { return has_counter_ ? __builtin_ia32_rdtsc() : monotonic_ns(); }
  uint64_t to_ns(uint64_t tick_count) const {
    return static_cast<uint64_t>(static_cast<double>(tick_count) * ns_per_tick_);
  }
  uint64_t from_ns(uint64_t ns) const {
    return static_cast<uint64_t>(static_cast<double>(ns) / ns_per_tick_);
  }

 private:
  bool has_counter_;
  double ns_per_tick_ = 1.0;
};

/// Counts of delays. Relaxed: for display only.
struct DelayCounts {
  std::atomic<uint64_t> delays{0};
  std::atomic<uint64_t> asked_ns{0};
  std::atomic<uint64_t> taken_ns{0};  // at least `asked_ns`; the difference is the error
};

/// Occupies a processor for a time, as waiting for real NVRAM does. A sleep of microseconds is
/// neither precise nor short enough. Thread-safe. Source: [FOEDUS15] section 9.3.1.
class SpinDelay {
 public:
  /// Calibrates the counter, which takes 10 ms. `counts` may be null, else it outlives the object.
  explicit SpinDelay(DelayCounts* counts) : counts_(counts) {}

  /// Returns after `ns` at the earliest. If the kernel runs another thread meanwhile, the delay
  /// takes longer, and the counts show that. REQUIRES: `ns` is at most kMaxNs.
  void spin(uint64_t ns) const;

  /// A minute. No device takes longer for a call that does not hang.
  static constexpr uint64_t kMaxNs = 60'000'000'000;

 private:
  TickClock clock_;
  DelayCounts* counts_;
};

}  // namespace atolldb
