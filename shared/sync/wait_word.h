// Blocking on shared memory: a 32-bit word with a futex underneath (R24). All waits use it.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace atolldb {

/// Longest single sleep. After it the sleeper checks the cluster state again.
inline constexpr std::chrono::milliseconds kMaxSleep{50};

/// Hint to the processor that this is a spin loop.
inline void spin_pause() { __builtin_ia32_pause(); }

/// One iteration of a wait for another worker's next few instructions: a pause. Every 256th
/// iteration it yields, in case that worker was descheduled, and returns true.
inline bool spin_or_yield(uint32_t& turns) {
  spin_pause();
  if (++turns % 256 != 0) return false;
  sched_yield();
  return true;
}

/// Blocks while `*word == expected`, at most `timeout`. Returns early on a wake-up, a signal or
/// spuriously, so the caller loops. Works across processes (shared futex).
void wait_on(const std::atomic<uint32_t>& word, uint32_t expected,
             std::chrono::nanoseconds timeout);

inline constexpr int kWakeAll = 0x7fffffff;

/// Wakes up to `count` threads, of any process, that wait on `word`.
void wake(const std::atomic<uint32_t>& word, int count);

/// Full store-load barrier between a thread's earlier stores and its later loads (R9, R21).
void full_fence();

}  // namespace atolldb
