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

/// Starts the words of a new cluster.
void start_epochs(EpochBlock& epochs, uint64_t start_epoch);

/// One tick. False: the clock was held, because an epoch has stayed open for kMaxOpenEpochs, or
/// because the last epoch is reached.
bool tick_epochs(EpochBlock& epochs, const std::vector<NodeShared*>& nodes);

/// Ticks with a thread of its own, at absolute deadlines.
class EpochClock {
 public:
  EpochClock(EpochBlock& epochs, std::vector<NodeShared*> nodes, std::chrono::microseconds interval,
             Logger logger);
  ~EpochClock() { stop(); }

  void start();
  void stop();
  /// Ticks so far: shows that the thread lives.
  uint64_t tick_count() const { return ticks_.load(std::memory_order_relaxed); }
  /// Blocks until every thread of the cluster has begun later than `epoch`. False: stopped.
  bool wait_until_begun_after(uint64_t epoch);

 private:
  void run();

  EpochBlock& epochs_;
  std::vector<NodeShared*> nodes_;
  std::chrono::microseconds interval_;
  Logger logger_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> ticks_{0};
  std::mutex mutex_;
  std::condition_variable ticked_;  // with mutex_; notified after every tick and at the end
  std::thread thread_;
};

}  // namespace atolldb
