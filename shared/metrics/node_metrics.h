// Prometheus metrics of a node: the sums of its workers' counters, and the gauges of its pool.
#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <vector>

#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// Thread: any of the HTTP server. Reads shared memory only, and blocks no worker.
class NodeMetrics : public prometheus::Collectable {
 public:
  /// REQUIRES: both segments stay mapped as long as this object lives.
  NodeMetrics(uint32_t node, const NodeShared& shared, const MetricsSegment& metrics)
      : node_(node), shared_(shared), metrics_(metrics) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  uint32_t node_;
  const NodeShared& shared_;
  const MetricsSegment& metrics_;
};

}  // namespace atolldb
