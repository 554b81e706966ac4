// Blocking on shared memory: a 32-bit word with a futex underneath (R24). All waits use it. This
// header also has a mutex on such a word.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "shared/base/check.h"

namespace atolldb {

/// Longest single sleep. After it the sleeper checks the cluster state again.
inline constexpr std::chrono::milliseconds kMaxSleep{50};

/// Hint to the processor that this is a spin loop.
inline void spin_pause() { __builtin_ia32_pause(); }

/// Makes one iteration of a short wait for another worker: a pause. Every 256th iteration also
/// yields the processor, because that worker may be descheduled, and returns true.
inline bool spin_or_yield(uint32_t& turns) {
  spin_pause();
  if (++turns % 256 != 0) return false;
  sched_yield();
  return true;
}

/// Blocks while `*word == expected`, at most `timeout`. Returns early on a wake-up, a signal or
/// spuriously, so the caller loops. Works across processes (shared futex). REQUIRES: `timeout` is
/// not negative.
void wait_on(const std::atomic<uint32_t>& word, uint32_t expected,
             std::chrono::nanoseconds timeout);

inline constexpr int kWakeAll = 0x7fffffff;

/// Wakes up to `count` threads, of any process, that wait on `word`.
void wake(const std::atomic<uint32_t>& word, int count);

/// Full store-load barrier between a thread's earlier stores and its later loads (R9, R21).
void full_fence();

/// Mutex for short critical sections between threads of one node (page pool batches, return rings).
/// Lives in shared memory. Spins briefly, then sleeps. Threads of other nodes never use it.
class FutexLock {
 public:
  bool try_lock() {
    uint32_t expected = kFree;
    // Acquire pairs with the release in `unlock`.
    return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  void lock() {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (try_lock()) return;
      spin_pause();
    }
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
      wait_on(word_, kContended, kMaxSleep);
    }
  }

  void unlock() {
    const uint32_t before = word_.exchange(kFree, std::memory_order_release);
    DCHECK(before != kFree);  // the caller holds the lock
    if (before == kContended) wake(word_, 1);
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kContended = 2;
  static constexpr int kSpins = 200;

  std::atomic<uint32_t> word_{kFree};
};
static_assert(sizeof(FutexLock) == 4);

}  // namespace atolldb
