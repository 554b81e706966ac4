// The cluster's clock: advances the current epoch and publishes what may be concluded from all
// worker slots (R9, R26).
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

/// The clock runs at most this many epochs ahead of the oldest open one (R26).
inline constexpr uint64_t kMaxOpenEpochs = 64;

/// When no commit was made for so long, every logger writes its closing marker (R51).
inline constexpr std::chrono::milliseconds kClosingAfter{100};
/// The same in epochs, with the default interval.
inline constexpr uint64_t kEpochsUntilClosing = 10;

/// The latest epoch that a commit of any node is in. Loaded after an epoch was found closed it
/// names all commits of that epoch: they made it dirty before they cleared their in-commit words
/// (R27).
uint64_t dirty_epoch(const std::vector<NodeShared*>& nodes);

/// Starts the words of a new cluster.
void start_epochs(EpochBlock& epochs, uint64_t start_epoch);

/// One tick. `is_logged`: loggers make epochs durable, and are told here for which one they write
/// a marker (R27), and for which one the closing marker (R51); otherwise the closed epoch counts as
/// durable. False: the clock was held, because
/// an epoch has stayed open for kMaxOpenEpochs, or because the last epoch is reached.
bool tick_epochs(EpochBlock& epochs, const std::vector<NodeShared*>& nodes, bool is_logged,
                 uint64_t epochs_until_closing = kEpochsUntilClosing);

/// Publishes a later global durable epoch and wakes who waits for it. One thread: the clock's, or
/// with a log that of DurableEpoch.
void raise_durable(EpochBlock& epochs, uint64_t epoch);

/// Ticks with a thread of its own, at absolute deadlines.
class EpochClock {
 public:
  EpochClock(EpochBlock& epochs, std::vector<NodeShared*> nodes, std::chrono::microseconds interval,
             bool is_logged, Logger logger);
  ~EpochClock() { stop(); }

  void start();
  void stop();
  /// Ticks so far: shows that the thread lives.
  uint64_t tick_count() const { return ticks_.load(std::memory_order_relaxed); }
  /// Blocks until every thread of the cluster has begun later than `epoch`, for so long at most.
  /// False: a thread that began before goes on still, or the clock has stopped.
  bool wait_until_begun_after(uint64_t epoch, std::chrono::milliseconds patience);

 private:
  void run();

  EpochBlock& epochs_;
  std::vector<NodeShared*> nodes_;
  std::chrono::microseconds interval_;
  uint64_t epochs_until_closing_;
  bool is_logged_;
  Logger logger_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> ticks_{0};
  std::mutex mutex_;
  std::condition_variable ticked_;  // with mutex_; notified after every tick and at the end
  std::thread thread_;
};

}  // namespace atolldb
