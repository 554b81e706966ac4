// How a scrape shows the calls to the device (R58).
#pragma once

#include "shared/memory/worker_metrics.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {

/// Adds the device families of one scrape.
void add_device(MetricFamilies& families, const DeviceMetrics& device);

}  // namespace atolldb
