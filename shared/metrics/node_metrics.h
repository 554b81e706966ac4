// Prometheus metrics of a node: the sums of its workers' counters, the gauges of its pool, and the
// counts of its snapshot cache by storage.
#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <vector>

#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// Thread: any of the HTTP server. Reads shared memory only, and blocks no worker.
class NodeMetrics : public prometheus::Collectable {
 public:
  /// `control` has the names of the storages.
  /// REQUIRES: the segments stay mapped as long as this object lives.
  NodeMetrics(uint32_t node, const NodeShared& shared, const MetricsSegment& metrics,
              const ControlSegment& control)
      : node_(node), shared_(shared), metrics_(metrics), control_(control) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  uint32_t node_;
  const NodeShared& shared_;
  const MetricsSegment& metrics_;
  const ControlSegment& control_;
};

}  // namespace atolldb
