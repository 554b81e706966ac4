// The one way to block on shared memory: a 32-bit word, futex underneath (R24).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace atolldb {

/// Nobody sleeps longer than this in one go: the sleeper then looks at the cluster state again.
inline constexpr std::chrono::milliseconds kMaxSleep{50};

/// Hint to the processor that this is a spin loop.
inline void spin_pause() { __builtin_ia32_pause(); }

/// Blocks while `*word == expected`, at most `timeout`. Returns early on a wake-up, a signal or
/// spuriously: the caller loops. Works across processes (shared futex).
void wait_on(const std::atomic<uint32_t>& word, uint32_t expected,
             std::chrono::nanoseconds timeout);

/// Wakes up to `count` threads, of any process, that wait on `word`.
void wake(const std::atomic<uint32_t>& word, int count);

/// Full store-load barrier between own earlier stores and own later loads (R9, R21).
void full_fence();

}  // namespace atolldb
