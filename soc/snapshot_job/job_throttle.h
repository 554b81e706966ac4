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

/// Thread: any, for all functions.
class JobThrottle {
 public:
  using Clock = std::chrono::steady_clock;

  /// `is_over`: returns true if all pauses must end.
  explicit JobThrottle(std::function<bool()> is_over);

  /// Sets the bytes of log that the mappers read together. Called before they begin.
  void plan(uint64_t log_bytes);
  /// Sets the part of the work that should be done now, in [0, 1]. 1: no thread pauses. It is valid
  /// for kGoalLife: if the coordinator is silent, the job goes on without pauses.
  void set_goal(double goal);
  /// Ends all pauses if `is_over` returns true now.
  void wake();

  /// Counts log that a mapper has read.
  void mapped(uint64_t bytes);
  /// Adds records to those that the composers have to apply.
  void add_to_compose(uint64_t records);
  /// Counts records that a composer has applied.
  void composed(uint64_t records);
  /// Blocks while more of the work is done than should be. REQUIRES: the calling thread holds no
  /// lock, and has no open reservation in an inbox.
  void pause();

  /// Returns the sum of the pauses of all threads.
  std::chrono::microseconds paused() const;
  /// Returns the part of the work that is done, in [0, 1].
  double done() const;

  static constexpr std::chrono::milliseconds kGoalLife{1'000};
  /// Longest time until a pausing thread checks `is_over` again.
  static constexpr std::chrono::milliseconds kMaxSleep{100};

 private:
  /// REQUIRES: mutex_ is held.
  bool must_pause(Clock::time_point now) const;

  const std::function<bool()> is_over_;
  // Relaxed, for all: the words are only compared with a goal that is a rough figure, too.
  std::atomic<uint64_t> log_bytes_{0};
  std::atomic<uint64_t> mapped_{0};
  std::atomic<uint64_t> to_compose_{0};
  std::atomic<uint64_t> composed_{0};
  std::atomic<int64_t> paused_ns_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  double goal_ = 1;              // guarded by mutex_
  Clock::time_point goal_ends_;  // guarded by mutex_
};

}  // namespace atolldb
