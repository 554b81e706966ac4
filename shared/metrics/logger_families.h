// A node's metric families for its loggers.
#pragma once

#include <span>

#include "shared/memory/worker_metrics.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {

/// Adds families with a label `logger`. Adds none without loggers (durability off).
void add_loggers(MetricFamilies& families, std::span<const LoggerMetrics> loggers);

}  // namespace atolldb
