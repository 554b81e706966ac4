// Keeps processes that replay together in step. Source of the limit: the coordinator, which knows
// how far all processes are.
//
// The process that stores a key first makes the page, and the process that splits a page makes the
// new pages. So with processes that are far apart, one would make most pages, in its own memory.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "shared/base/check.h"

namespace atolldb {

/// Thread: any, for all functions.
class ReplayPace {
 public:
  using Clock = std::chrono::steady_clock;
  /// A limit counts for this time. If its source is silent, nothing pauses.
  static constexpr std::chrono::milliseconds kValid{1000};

  /// Lets the threads pause once the process has read more bytes than `bytes`.
  void set_limit(uint64_t bytes, Clock::time_point now = Clock::now()) {
    const std::lock_guard guard(mutex_);
    limit_.store(bytes, std::memory_order_relaxed);
    valid_until_ = now + kValid;
    changed_.notify_all();
  }
  /// Counts bytes that a thread has read.
  void add(uint64_t bytes) { read_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Relaxed, as the other accesses: the limit need not be exact.
  bool is_ahead() const {
    return read_.load(std::memory_order_relaxed) > limit_.load(std::memory_order_relaxed);
  }
  /// Waits until the process is not ahead any more, or until the limit does not count any more.
  /// REQUIRES: the thread holds no page.
  void wait() {
    std::unique_lock lock(mutex_);
    while (is_ahead() && Clock::now() < valid_until_) {
      DCHECK(lock.owns_lock());
      const auto until = valid_until_;  // a copy, because set_limit may change it meanwhile
      changed_.wait_until(lock, until);
    }
  }

 private:
  std::atomic<uint64_t> read_{0};
  std::atomic<uint64_t> limit_{UINT64_MAX};  // changed under the mutex
  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point valid_until_{};  // guarded by mutex_
};

}  // namespace atolldb
