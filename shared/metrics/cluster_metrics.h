// What the coordinator tells Prometheus: state, epochs and storages of the cluster.
#pragma once

#include <prometheus/collectable.h>

#include <vector>

#include "shared/memory/control_layout.h"

namespace atolldb {

/// Called by the threads of the HTTP server. Reads shared memory only.
class ClusterMetrics : public prometheus::Collectable {
 public:
  /// REQUIRES: the segment stays mapped as long as this object lives.
  explicit ClusterMetrics(const ControlSegment& control) : control_(control) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const ControlSegment& control_;
};

}  // namespace atolldb
