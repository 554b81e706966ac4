// A node's metric families for its snapshot cache and its part of the gleaner, or for its part of
// checkpoints.
#pragma once

#include "shared/memory/control_layout.h"
#include "shared/memory/worker_metrics.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {

/// REQUIRES: the node has a log. Without a log there are no snapshots.
void add_snapshot_cache(MetricFamilies& families, const MetricsSegment& metrics);
/// Adds families with a label `storage`, its name. They have samples of the ready storages whose
/// pages were in the cache. Adds no family if there are none.
void add_storage_caches(MetricFamilies& families, const MetricsSegment& metrics,
                        const ControlSegment& control);
void add_gleaner(MetricFamilies& families, const GleanerMetrics& gleaner);
void add_scrub(MetricFamilies& families, const GleanerMetrics& gleaner);
void add_checkpoints(MetricFamilies& families, const NodeCheckpointMetrics& checkpoints);

}  // namespace atolldb
