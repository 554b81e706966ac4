// Prometheus metrics that each process of a cluster has: its build, and its use of the machine.
#pragma once

#include <prometheus/collectable.h>

#include <vector>

namespace atolldb {

/// The standard families process_*, as other programs export them, and atoll_build_info. Reads
/// /proc at each scrape. Thread: any of the HTTP server.
class ProcessMetrics : public prometheus::Collectable {
 public:
  ProcessMetrics();

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const double started_at_s_;  // seconds since 1970
};

}  // namespace atolldb
