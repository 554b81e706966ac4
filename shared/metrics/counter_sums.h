// Sums of the counters of all threads of a node, for `atoll status` and for scrapes.
#pragma once

#include <cstdint>

#include "shared/base/status.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

uint64_t sum_counter(const MetricsSegment& metrics, Counter WorkerMetrics::* counter);
uint64_t sum_aborts(const MetricsSegment& metrics, Status reason);

}  // namespace atolldb
