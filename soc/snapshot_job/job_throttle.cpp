#include "soc/snapshot_job/job_throttle.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Part of a job's work that ends when its mappers do. Mapping and reducing a record takes about as
/// long as composing it.
constexpr double kMapPart = 0.5;

double part(uint64_t done, uint64_t all) {
  return all == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
}

}  // namespace

JobThrottle::JobThrottle(std::function<bool()> is_over) : is_over_(std::move(is_over)) {
  CHECK(is_over_);
}

void JobThrottle::plan(uint64_t log_bytes) {
  CHECK(mapped_.load(std::memory_order_relaxed) == 0);
  log_bytes_.store(log_bytes, std::memory_order_relaxed);
}

void JobThrottle::set_goal(double goal) {
  CHECK(goal >= 0 && goal <= 1);
  {
    const std::lock_guard guard(mutex_);
    goal_ = goal;
    goal_ends_ = Clock::now() + kGoalLife;
  }
  changed_.notify_all();
}

void JobThrottle::wake() {
  // A thread between its check of `is_over` and its sleep holds the mutex.
  {
    const std::lock_guard guard(mutex_);
  }
  changed_.notify_all();
}

void JobThrottle::mapped(uint64_t bytes) { mapped_.fetch_add(bytes, std::memory_order_relaxed); }

void JobThrottle::add_to_compose(uint64_t records) {
  to_compose_.fetch_add(records, std::memory_order_relaxed);
}

void JobThrottle::composed(uint64_t records) {
  composed_.fetch_add(records, std::memory_order_relaxed);
}

double JobThrottle::done() const {
  const uint64_t to_compose = to_compose_.load(std::memory_order_relaxed);
  if (to_compose == 0) {
    return kMapPart * part(mapped_.load(std::memory_order_relaxed),
                           log_bytes_.load(std::memory_order_relaxed));
  }
  // A reducer has all its records, so all mappers have ended.
  return kMapPart + (1 - kMapPart) * part(composed_.load(std::memory_order_relaxed), to_compose);
}

bool JobThrottle::must_pause(Clock::time_point now) const {
  return now < goal_ends_ && goal_ < 1 && done() > goal_ && !is_over_();
}

void JobThrottle::pause() {
  std::unique_lock lock(mutex_);
  const auto begun = Clock::now();
  auto now = begun;
  for (; must_pause(now); now = Clock::now()) {
    changed_.wait_until(lock, std::min(goal_ends_, now + kMaxSleep));
  }
  if (now == begun) return;
  paused_ns_.fetch_add(std::chrono::nanoseconds(now - begun).count(), std::memory_order_relaxed);
}

std::chrono::microseconds JobThrottle::paused() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::nanoseconds(paused_ns_.load(std::memory_order_relaxed)));
}

}  // namespace atolldb
