#include "shared/metrics/counter_sums.h"

namespace atolldb {

uint64_t sum_counter(const MetricsSegment& metrics, Counter WorkerMetrics::* counter) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < metrics.slot_count; ++i) total += (metrics.worker(i).*counter).get();
  return total;
}

uint64_t sum_aborts(const MetricsSegment& metrics, Status reason) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < metrics.slot_count; ++i) {
    total += metrics.worker(i).aborts[static_cast<uint32_t>(reason)].get();
  }
  return total;
}

}  // namespace atolldb
