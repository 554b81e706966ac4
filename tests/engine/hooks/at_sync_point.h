// Runs steps of other workers in the middle of an operation, at sync points
// (engine/hooks/sync_points.h).
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "engine/hooks/sync_points.h"

namespace atolldb::test {

#ifdef ATOLL_MUTANTS
/// During its lifetime, runs `action` at every sync point that any thread reaches.
class AtSyncPoints {
 public:
  explicit AtSyncPoints(std::function<void(SyncPoint)> action) {
    at_sync_point = std::move(action);
  }
  ~AtSyncPoints() { at_sync_point = nullptr; }
  AtSyncPoints(const AtSyncPoints&) = delete;
  AtSyncPoints& operator=(const AtSyncPoints&) = delete;
};

/// During its lifetime, runs `action` where a thread first reaches the sync point. Later passes,
/// and passes by the action itself, do nothing.
class AtFirst {
 public:
  AtFirst(SyncPoint which, std::function<void()> action)
      : action_(std::move(action)), points_([this, which](SyncPoint reached) {
          if (reached == which && !reached_.exchange(true, std::memory_order_acq_rel)) action_();
        }) {}
  bool was_reached() const { return reached_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> reached_{false};
  std::function<void()> action_;
  AtSyncPoints points_;
};

#endif

/// A thread that either ends or blocks in a way that the test can see. The destructor joins the
/// thread. REQUIRES: before the destructor runs, the test releases everything that the thread waits
/// for.
class Other {
 public:
  template <typename Body>
  explicit Other(Body&& body)
      : thread_([this, body = std::forward<Body>(body)]() mutable {
          body();
          done_.store(true, std::memory_order_release);
        }) {}
  bool is_done() const { return done_.load(std::memory_order_acquire); }
  /// Waits until the thread is done or `condition` holds. REQUIRES: one of the two happens.
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
