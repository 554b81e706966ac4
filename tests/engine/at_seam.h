// Steps of other workers in the middle of an operation (engine/seams.h).
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "engine/seams.h"

namespace atolldb::test {

/// While it lives, `action` runs at every seam that any thread reaches.
class AtSeams {
 public:
  explicit AtSeams(std::function<void(Seam)> action) { at_seam = std::move(action); }
  ~AtSeams() { at_seam = nullptr; }
  AtSeams(const AtSeams&) = delete;
  AtSeams& operator=(const AtSeams&) = delete;
};

/// While it lives, `action` runs where some thread first reaches the seam. What the action itself
/// does, and all that follows, passes the seam as if it were not there.
class AtFirst {
 public:
  AtFirst(Seam which, std::function<void()> action)
      : action_(std::move(action)), seams_([this, which](Seam reached) {
          if (reached == which && !reached_.exchange(true, std::memory_order_acq_rel)) action_();
        }) {}
  bool was_reached() const { return reached_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> reached_{false};
  std::function<void()> action_;
  AtSeams seams_;
};

/// A thread that is over, or stuck at something that the test can see. Joined when this ends: what
/// the thread waits for must be released before.
class Other {
 public:
  template <typename Body>
  explicit Other(Body&& body)
      : thread_([this, body = std::forward<Body>(body)]() mutable {
          body();
          done_.store(true, std::memory_order_release);
        }) {}
  bool is_done() const { return done_.load(std::memory_order_acquire); }
  /// Until the thread is done or `condition` holds: one of them must come.
  template <typename Condition>
  void wait_until(Condition&& condition) const {
    while (!is_done() && !condition()) std::this_thread::yield();
  }
  void join() { thread_.join(); }

 private:
  std::atomic<bool> done_{false};
  std::jthread thread_;
};

}  // namespace atolldb::test
