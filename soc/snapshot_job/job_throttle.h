// Lets the threads of a node's part of a snapshot job sleep when the job has done more of its work
// than it should have (SnapshotPace in the coordinator).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace atolldb {

/// Tests set hours, so that no time ends a pause.
struct JobThrottleTimes {
  /// A goal is valid for so long. If the coordinator is silent, the job goes on without pauses.
  std::chrono::milliseconds goal_life{1'000};
  /// Longest time until a pausing thread checks again whether the job is over.
  std::chrono::milliseconds max_sleep{100};
};

/// Thread: any, for all functions.
class JobThrottle {
 public:
  using Clock = std::chrono::steady_clock;

  /// `is_over`: returns true if all pauses must end.
  explicit JobThrottle(std::function<bool()> is_over, JobThrottleTimes times = {});

  /// Sets the bytes of log that the mappers read together, and the number of reducers. Called
  /// before the mappers begin. Without log the mappers have done nothing, so they do not pause.
  void plan(uint64_t log_bytes, uint32_t reducers);
  /// Sets the part of the work that should be done now, in [0, 1]. 1: no thread pauses. It is valid
  /// for JobThrottleTimes::goal_life.
  void set_goal(double goal);
  /// Ends all pauses if `is_over` returns true now.
  void wake();

  /// Counts log that a mapper has read.
  void mapped(uint64_t bytes);
  /// Adds the records that a reducer has collected to those that the composers have to apply.
  /// Called once for each reducer.
  void add_to_compose(uint64_t records);
  /// Counts records that a composer has applied, and records that turned out to be redundant.
  void composed(uint64_t records);
  /// Blocks while more of the work is done than should be. REQUIRES: the calling thread holds no
  /// lock, and has no open reservation in an inbox.
  void pause();

  /// Returns the sum of the pauses of all threads. Pauses that have not ended count until now.
  std::chrono::microseconds paused() const;
  /// Returns the part of the work that is done, in [0, 1].
  double done() const;

 private:
  // REQUIRES for both: mutex_ is held.
  bool must_pause(Clock::time_point now) const;
  Clock::duration paused_until(Clock::time_point now) const;

  const std::function<bool()> is_over_;
  const JobThrottleTimes times_;
  // Relaxed, for all: the words are only compared with a goal that is a rough figure, too.
  std::atomic<uint64_t> log_bytes_{0};
  std::atomic<uint32_t> reducers_{0};
  std::atomic<uint64_t> mapped_{0};
  std::atomic<uint32_t> collected_{0};  // reducers that have called add_to_compose
  std::atomic<uint64_t> to_compose_{0};
  std::atomic<uint64_t> composed_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  double goal_ = 1;
  Clock::time_point goal_ends_;
  uint32_t pausing_ = 0;               // threads that pause
  Clock::time_point pausing_changed_;  // last change of pausing_
  Clock::duration paused_before_{0};   // sum of all pauses until that change
};

}  // namespace atolldb
