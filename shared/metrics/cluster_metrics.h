// Prometheus metrics of the coordinator: state, epochs, storages and snapshots of the cluster.
#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <vector>

#include "shared/memory/control_layout.h"
#include "shared/memory/worker_metrics.h"
#include "shared/metrics/snapshot_metrics.h"

namespace atolldb {

/// Thread: any of the HTTP server. Reads memory only.
class ClusterMetrics : public prometheus::Collectable {
 public:
  /// `snapshots`, `device`: null without a log. `restarts`: restarts of the cluster by its launcher
  /// before this process. REQUIRES: the segment stays mapped, and `snapshots` and `device` live, as
  /// long as this object.
  explicit ClusterMetrics(const ControlSegment& control, const SnapshotMetrics* snapshots = nullptr,
                          uint64_t restarts = 0, const DeviceMetrics* device = nullptr)
      : control_(control), snapshots_(snapshots), restarts_(restarts), device_(device) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const ControlSegment& control_;
  const SnapshotMetrics* const snapshots_;
  const uint64_t restarts_;
  const DeviceMetrics* const device_;
};

}  // namespace atolldb
