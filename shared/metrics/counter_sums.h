// Counters of all threads of a node: what `atoll status` and a scrape both show.
#pragma once

#include <cstdint>

#include "shared/metrics/worker_metrics.h"
#include "shared/status.h"

namespace atolldb {

uint64_t sum_counter(const MetricsSegment& metrics, Counter WorkerMetrics::* counter);
uint64_t sum_aborts(const MetricsSegment& metrics, Status reason);

}  // namespace atolldb
