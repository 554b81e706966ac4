// A node's metric families for its snapshot cache and its part of the gleaner.
#pragma once

#include "shared/memory/worker_metrics.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {

/// REQUIRES: the node has a log. Without a log there are no snapshots.
void add_snapshot_cache(MetricFamilies& families, const MetricsSegment& metrics);
void add_gleaner(MetricFamilies& families, const GleanerMetrics& gleaner);

}  // namespace atolldb
