// Throttle of a snapshot job on one node. The threads of the job sleep while the job is ahead of
// its goal. The coordinator sets the goal (SnapshotPace).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace atolldb {

/// Times of the throttle. Tests set them to hours, so that no pause ends by time.
struct JobThrottleTimes {
  /// Time for which a goal is valid. If the coordinator sends no goal for so long, the job
  /// continues without pauses.
  std::chrono::milliseconds goal_life{1'000};
  /// Longest sleep of a pausing thread. After it, the thread checks again whether the job is over.
  std::chrono::milliseconds max_sleep{100};
};

/// Thread: any, for all functions.
class JobThrottle {
 public:
  using Clock = std::chrono::steady_clock;

  /// `is_over`: returns true if all pauses must end.
  explicit JobThrottle(std::function<bool()> is_over, JobThrottleTimes times = {});

  /// Sets the number of log bytes that the mappers read together, and the number of reducers.
  /// Called before the mappers begin. If `log_bytes` is 0, mappers do not pause, because their part
  /// of the work then counts as not done.
  void plan(uint64_t log_bytes, uint32_t reducers);
  /// Sets the part of the work that should be done now, in [0, 1]. 1: no thread pauses. It is valid
  /// for JobThrottleTimes::goal_life.
  void set_goal(double goal);
  /// Wakes all pausing threads. They end their pauses if `is_over` returns true now.
  void wake();

  /// Adds to the bytes of log that mappers have read.
  void mapped(uint64_t bytes);
  /// Adds the records that one reducer has collected to the records that composers have to apply.
  /// Called once for each reducer.
  void add_to_compose(uint64_t records);
  /// Adds to the records that are done: those that composers have applied, and those that turned
  /// out to be redundant.
  void composed(uint64_t records);
  /// Blocks while the done part of the work is larger than the goal. REQUIRES: the calling thread
  /// holds no lock, and has no open reservation in an inbox.
  void pause();
  /// Returns whether `pause` would block now.
  bool must_pause() const;

  /// Returns the sum of the pauses of all threads. Includes the time until now of pauses that have
  /// not ended.
  std::chrono::microseconds paused() const;
  /// Returns the part of the work that is done, in [0, 1].
  double done() const;

 private:
  /// Takes no lock, because the threads of the job call it often.
  bool must_pause(Clock::time_point now) const;
  /// REQUIRES: mutex_ is held.
  Clock::duration paused_until(Clock::time_point now) const;

  const std::function<bool()> is_over_;
  const JobThrottleTimes times_;
  // Accesses to these words are relaxed. The words are only compared with a goal, which is an
  // estimate, too.
  std::atomic<uint64_t> log_bytes_{0};
  std::atomic<uint32_t> reducers_{0};
  std::atomic<uint64_t> mapped_{0};
  std::atomic<uint32_t> collected_{0};  // reducers that have called add_to_compose
  std::atomic<uint64_t> to_compose_{0};
  std::atomic<uint64_t> composed_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Written under mutex_, so that a thread that has checked them there gets the notification. The
  // store of the end is a release: a thread that sees it also sees its goal.
  std::atomic<double> goal_{1};
  std::atomic<Clock::time_point> goal_ends_{Clock::time_point()};
  // The next members are guarded by mutex_.
  uint32_t pausing_ = 0;               // number of threads that pause
  Clock::time_point pausing_changed_;  // time of the last change of pausing_
  Clock::duration paused_before_{0};   // sum of all pauses until that change
};

}  // namespace atolldb
