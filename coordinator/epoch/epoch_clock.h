// The cluster's epoch clock. It advances the current epoch and publishes the epochs that it derives
// from all worker slots (R9, R26).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// The current epoch is at most this many epochs ahead of the oldest open epoch (R26).
inline constexpr uint64_t kMaxOpenEpochs = 64;

/// After this time without a commit every logger writes its closing marker (R51).
inline constexpr std::chrono::milliseconds kClosingAfter{100};
/// kClosingAfter in epochs of the default interval.
inline constexpr uint64_t kEpochsUntilClosing = 10;

/// Only epochs up to this one end early. So early ends use at most half of all epochs, and the
/// other half lasts for another decade of regular epochs of 10 ms.
inline constexpr uint64_t kLastEarlyEpoch = kMaxEpoch / 2;

/// Returns the latest epoch in which any node has a commit, or 0 if no node has. After the caller
/// has found an epoch closed, the result covers all commits of that epoch: a commit makes its epoch
/// dirty before it clears its in-commit epoch (R27).
uint64_t dirty_epoch(const std::vector<NodeShared*>& nodes);

/// Initializes the epoch words of a new cluster.
void start_epochs(EpochBlock& epochs, uint64_t start_epoch);

/// Does one tick. If `is_logged`, loggers make epochs durable, and the tick tells them the epoch of
/// the next marker (R27) and of the closing marker (R51). Without a log, a closed epoch counts as
/// durable. `close_up_to`: the loggers make this epoch durable even if no node commits any more; 0:
/// none. `holds_settled`: the settled epoch does not rise (R96). Returns false if the current epoch
/// did not advance. The reason is that an epoch was open
/// for kMaxOpenEpochs, or that the last epoch is reached.
bool tick_epochs(EpochBlock& epochs, const std::vector<NodeShared*>& nodes, bool is_logged,
                 uint64_t epochs_until_closing = kEpochsUntilClosing, uint64_t close_up_to = 0,
                 bool holds_settled = false);

/// Returns whether a worker has asked for an early end of the current epoch (request_epoch_end),
/// and this epoch may end early. Thread: the clock's.
bool is_end_requested(const EpochBlock& epochs);
/// Returns whether a marker that the clock has asked for is not durable yet. An epoch does not end
/// early meanwhile, so that the next marker covers all commits of that time. Thread: the clock's.
bool waits_for_loggers(const EpochBlock& epochs);

/// Raises the global durable epoch and wakes its waiters. Thread: the thread of DurableEpoch, or
/// the clock's if there is no log.
void raise_durable(EpochBlock& epochs, uint64_t epoch);

/// Times between two ticks of the clock.
struct EpochIntervals {
  std::chrono::microseconds regular;   // without a request for an early end
  std::chrono::microseconds shortest;  // with such a request
};

/// The thread that advances the epochs: one tick per interval, at absolute deadlines, and one for
/// each early end of an epoch.
class EpochClock {
 public:
  EpochClock(EpochBlock& epochs, std::vector<NodeShared*> nodes, EpochIntervals intervals,
             bool is_logged, Logger logger);
  ~EpochClock() { stop(); }

  void start();
  void stop();
  /// Returns the number of ticks. If it grows, the clock's thread does not hang.
  uint64_t tick_count() const { return ticks_.load(std::memory_order_relaxed); }
  /// Lets every logger close `epoch` once it is over, although nothing is committed in it. Thread:
  /// any.
  void close_up_to(uint64_t epoch);
  /// Sets the settled epoch to `epoch`, and holds it there until release_settled (R96). REQUIRES:
  /// no transaction has run in this incarnation; `start` has returned.
  void hold_settled(uint64_t epoch);
  /// Lets the settled epoch rise again. Waits until it is at least `epoch`, or the clock stops.
  /// REQUIRES: `epoch` was before the first epoch of this incarnation.
  void release_settled(uint64_t epoch);
  /// Waits up to `patience` until all begin epochs are later than `epoch`. The wait also ends when
  /// the clock stops. Returns whether all begin epochs are later at the end of the wait.
  bool wait_until_begun_after(uint64_t epoch, std::chrono::milliseconds patience);

 private:
  void run();
  bool sleep(uint64_t earliest_ns, uint64_t deadline_ns) const;

  EpochBlock& epochs_;
  std::vector<NodeShared*> nodes_;
  EpochIntervals intervals_;
  uint64_t epochs_until_closing_;
  bool is_logged_;
  Logger logger_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> ticks_{0};
  std::atomic<uint64_t> close_up_to_{0};  // the argument of tick_epochs
  bool holds_settled_ = false;            // guarded by mutex_
  std::mutex mutex_;
  std::condition_variable ticked_;  // used with mutex_; notified after every tick and at the end
  std::thread thread_;
};

}  // namespace atolldb
