// The clocks of the benchmarks.
#pragma once

#include <cstdint>

#include "shared/base/tick_clock.h"

namespace atolldb::bench {

using atolldb::monotonic_ns;
using atolldb::TickClock;

/// Waits until `at_ns` of monotonic_ns(): sleeps first, and spins for the last part.
void wait_until_ns(uint64_t at_ns);

}  // namespace atolldb::bench
