#include "soc/snapshot_job/job_throttle.h"

#include <algorithm>
#include <utility>

#include "engine/gleaner/snapshot_plan.h"
#include "shared/base/check.h"

namespace atolldb {

JobThrottle::JobThrottle(std::function<bool()> is_over, JobThrottleTimes times)
    : is_over_(std::move(is_over)), times_(times) {
  CHECK(is_over_);
  CHECK(times_.goal_life.count() > 0 && times_.max_sleep.count() > 0);
}

void JobThrottle::plan(uint64_t log_bytes, uint32_t reducers) {
  CHECK(mapped_.load(std::memory_order_relaxed) == 0);
  log_bytes_.store(log_bytes, std::memory_order_relaxed);
  reducers_.store(reducers, std::memory_order_relaxed);
}

void JobThrottle::set_goal(double goal) {
  CHECK(goal >= 0 && goal <= 1);
  {
    const std::lock_guard guard(mutex_);
    goal_.store(goal, std::memory_order_relaxed);
    // Release pairs with the acquire in must_pause.
    goal_ends_.store(Clock::now() + times_.goal_life, std::memory_order_release);
  }
  changed_.notify_all();
}

void JobThrottle::wake() {
  // A pausing thread holds mutex_ from its check of is_over_ until it sleeps. So after this lock
  // either its check sees the change, or it sleeps and gets the notification.
  {
    const std::lock_guard guard(mutex_);
  }
  changed_.notify_all();
}

void JobThrottle::mapped(uint64_t bytes) { mapped_.fetch_add(bytes, std::memory_order_relaxed); }

void JobThrottle::add_to_compose(uint64_t records) {
  to_compose_.fetch_add(records, std::memory_order_relaxed);
  collected_.fetch_add(1, std::memory_order_relaxed);
}

void JobThrottle::composed(uint64_t records) {
  composed_.fetch_add(records, std::memory_order_relaxed);
}

double JobThrottle::done() const {
  const uint32_t collected = collected_.load(std::memory_order_relaxed);
  if (collected == 0) {
    const auto log_bytes = static_cast<double>(log_bytes_.load(std::memory_order_relaxed));
    return work_of_mappers(mapped_.load(std::memory_order_relaxed), log_bytes);
  }
  // Some reducers have collected all their records, so all mappers have ended. The other reducers
  // are assumed to have an average number of records.
  const uint32_t reducers = std::max(collected, reducers_.load(std::memory_order_relaxed));
  const double all =
      static_cast<double>(to_compose_.load(std::memory_order_relaxed)) * reducers / collected;
  return work_of_composers(composed_.load(std::memory_order_relaxed), all);
}

bool JobThrottle::must_pause(Clock::time_point now) const {
  // Acquire pairs with the release in set_goal.
  if (now >= goal_ends_.load(std::memory_order_acquire)) return false;
  const double goal = goal_.load(std::memory_order_relaxed);
  return goal < 1 && done() > goal && !is_over_();
}

bool JobThrottle::must_pause() const { return must_pause(Clock::now()); }

void JobThrottle::pause() {
  if (!must_pause()) return;
  std::unique_lock lock(mutex_);
  auto now = Clock::now();
  if (!must_pause(now)) return;
  paused_before_ = paused_until(now);
  pausing_changed_ = now;
  ++pausing_;
  for (; must_pause(now); now = Clock::now()) {
    // Relaxed: mutex_ is held.
    const auto goal_ends = goal_ends_.load(std::memory_order_relaxed);
    changed_.wait_until(lock, std::min(goal_ends, now + times_.max_sleep));
  }
  paused_before_ = paused_until(now);
  pausing_changed_ = now;
  --pausing_;
}

JobThrottle::Clock::duration JobThrottle::paused_until(Clock::time_point now) const {
  CHECK(now >= pausing_changed_);
  return paused_before_ + pausing_ * (now - pausing_changed_);
}

std::chrono::microseconds JobThrottle::paused() const {
  const std::lock_guard guard(mutex_);
  return std::chrono::duration_cast<std::chrono::microseconds>(paused_until(Clock::now()));
}

}  // namespace atolldb
