// A clock that is cheap enough to read around every transaction. It is the processor's time-stamp
// counter if that is invariant, otherwise the kernel's monotonic clock. Ticks of the kernel's clock
// are nanoseconds.
#pragma once

#include <cstdint>

namespace atolldb::bench {

/// Returns CLOCK_MONOTONIC, which is comparable between the processes of a machine.
uint64_t monotonic_ns();

/// Waits until `at_ns` of monotonic_ns(): sleeps first, and spins for the last part.
void wait_until_ns(uint64_t at_ns);

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

}  // namespace atolldb::bench
