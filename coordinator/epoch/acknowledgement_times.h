// Times of the stages between the end of an epoch and its durability (epoch_stages.h), and the
// slowest epochs with all their stages.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "shared/memory/control_layout.h"
#include "shared/memory/epoch_stages.h"
#include "shared/memory/node_layout.h"
#include "shared/metrics/cluster_metrics.h"

namespace atolldb {

/// How one epoch became durable.
struct EpochTrace {
  uint64_t epoch = 0;
  uint64_t total_ns = 0;  // from the end of the epoch to the end of the last stage
  std::array<uint64_t, kEpochStageCount> stage_ns = {};
  uint32_t node = 0;  // node of the last logger to sync; the first stages are of its batch
  uint32_t logger = 0;
  uint64_t published_at_ns = 0;  // by the monotonic clock
};

/// Finds the slowest epoch since a given epoch. Keeps only epochs that are slower than all later
/// ones. Of n epochs these are about ln(n). Thread: any.
class SlowestEpochs {
 public:
  /// Maximum number of epochs. The oldest one is removed if there are more.
  static constexpr size_t kMaxEpochs = 64;

  /// REQUIRES: the epochs ascend.
  void add(const EpochTrace& trace);
  /// Returns the slowest of the epochs from `epoch` on, or nothing if there is none.
  std::optional<EpochTrace> since(uint64_t epoch) const;

 private:
  mutable std::mutex mutex_;
  uint64_t last_epoch_ = 0;          // guarded by mutex_
  std::vector<EpochTrace> slowest_;  // guarded by mutex_; epochs ascend, times descend
};

/// Thread: the thread of DurableEpoch. `metrics` and `slowest`: any thread.
class AcknowledgementTimes {
 public:
  /// REQUIRES: the segments outlive this object.
  AcknowledgementTimes(const EpochBlock& epochs, std::vector<NodeShared*> nodes);

  /// Records the times of markers that loggers have synced since the last call. `seen_ns`: time at
  /// which the coordinator saw them.
  void record_markers(uint64_t seen_ns);
  /// Records that the epochs from `done` + 1 to `durable` became durable. `seen_ns`: time at which
  /// the coordinator saw the last marker. `published_ns`: time at which the durable epoch was
  /// raised.
  void record_durable(uint64_t done, uint64_t durable, uint64_t seen_ns, uint64_t published_ns);

  const AcknowledgementMetrics& metrics() const { return metrics_; }
  const SlowestEpochs& slowest() const { return slowest_; }

 private:
  EpochTrace trace_of_last_logger(uint64_t seen_ns, uint64_t published_ns) const;

  const EpochBlock& epochs_;
  const std::vector<NodeShared*> nodes_;
  /// Durable epochs of the loggers at the last call of record_markers, by node.
  std::vector<std::array<uint64_t, kMaxLoggersPerNode>> seen_;
  AcknowledgementMetrics metrics_;
  SlowestEpochs slowest_;
};

}  // namespace atolldb
