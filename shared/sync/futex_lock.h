// Mutex for short critical sections between threads of one node (page pool batches, return rings).
// Lives in shared memory. Spins briefly, then sleeps. Threads of other nodes never use it.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/sync/wait_word.h"

namespace atolldb {

class FutexLock {
 public:
  bool try_lock() {
    uint32_t expected = kFree;
    // Acquire pairs with the release in unlock.
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
    if (word_.exchange(kFree, std::memory_order_release) == kContended) wake(word_, 1);
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
