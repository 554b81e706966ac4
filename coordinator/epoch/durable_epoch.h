// The global durable epoch: the minimum over all loggers. A thread raises it whenever a logger has
// synced a marker.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/epoch/acknowledgement_times.h"
#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// Returns the last epoch that all loggers have made durable.
uint64_t durable_on_all(const std::vector<NodeShared*>& nodes);

/// Waits up to `patience` until `epoch` is durable. Returns false if it is not durable by then, or
/// if the cluster has failed. Thread: any.
bool wait_until_durable(const ControlSegment& control, uint64_t epoch,
                        std::chrono::milliseconds patience);

/// The only writer of EpochBlock::durable in a cluster that has a log.
class DurableEpoch {
 public:
  /// Called once, by the thread of this class, when a logger has failed. Nothing becomes durable
  /// any more.
  using OnFailure = std::function<void(const Error&)>;

  /// REQUIRES: the segments outlive this object.
  DurableEpoch(EpochBlock& epochs, std::vector<NodeShared*> nodes, OnFailure on_failure);
  ~DurableEpoch() { stop(); }

  void start();
  /// Reads the loggers' durable epochs a last time, then ends the thread.
  void stop();
  /// Thread: any.
  const AcknowledgementTimes& times() const { return times_; }

 private:
  void run();
  void raise();
  bool report_failure() const;

  EpochBlock& epochs_;
  std::vector<NodeShared*> nodes_;
  OnFailure on_failure_;
  AcknowledgementTimes times_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace atolldb
