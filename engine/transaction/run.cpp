#include "engine/transaction/run.h"

#include <sched.h>

#include <algorithm>

#include "shared/sync/wait_word.h"

namespace atolldb {

void Backoff::wait(uint32_t attempt) {
  // Xorshift: jitter only, quality does not matter.
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  constexpr uint32_t kMaxShift = 10;
  const uint64_t window = uint64_t{16} << std::min(attempt, kMaxShift);
  const uint64_t spins = state_ % window;
  if (attempt > 3) {
    // The other transaction's worker may be waiting for this very core.
    sched_yield();
  }
  for (uint64_t i = 0; i < spins; ++i) spin_pause();
}

}  // namespace atolldb
