// Prometheus metrics of a node: the sums of its workers' counters, the gauges of its pool, the
// counts of its snapshot cache by storage, and those of its procedures.
#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <vector>

#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"
#include "shared/metrics/network_metrics.h"
#include "shared/metrics/procedure_metrics.h"

namespace atolldb {

/// Thread: any of the HTTP server. Reads memory only, and blocks no worker.
class NodeMetrics : public prometheus::Collectable {
 public:
  /// `control` has the names of the storages. `procedures`: null if the node counts no calls.
  /// `network`: null if the node has no network port. `takes_checkpoints`: the cluster takes
  /// checkpoints, and no snapshots. REQUIRES: the segments stay mapped, and the other objects live,
  /// as long as this object.
  NodeMetrics(uint32_t node, const NodeShared& shared, const MetricsSegment& metrics,
              const ControlSegment& control, const ProcedureMetrics* procedures = nullptr,
              const NetworkMetrics* network = nullptr, bool takes_checkpoints = false)
      : node_(node),
        shared_(shared),
        metrics_(metrics),
        control_(control),
        procedures_(procedures),
        network_(network),
        takes_checkpoints_(takes_checkpoints) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  uint32_t node_;
  const NodeShared& shared_;
  const MetricsSegment& metrics_;
  const ControlSegment& control_;
  const ProcedureMetrics* const procedures_;
  const NetworkMetrics* const network_;
  const bool takes_checkpoints_;
};

}  // namespace atolldb
