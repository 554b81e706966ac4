// What a node's metrics say of snapshots.
#pragma once

#include "shared/metrics/metric_families.h"
#include "shared/metrics/worker_metrics.h"

namespace atolldb {

/// REQUIRES: the node has a log; without one there are no snapshots.
void add_snapshot_cache(MetricFamilies& families, const MetricsSegment& metrics);
void add_gleaner(MetricFamilies& families, const GleanerMetrics& gleaner);

}  // namespace atolldb
