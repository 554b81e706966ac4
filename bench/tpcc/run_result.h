// What one worker measured in a run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "bench/common/latency_histogram.h"
#include "bench/tpcc/inputs.h"
#include "shared/error.h"
#include "shared/metrics/worker_metrics.h"

namespace atolldb::tpcc {

/// Counters of the engine over the measured time.
struct EngineCounts {
  std::array<uint64_t, kStatusCount> aborts{};  // attempts, by reason; user_abort included
  uint64_t local_accesses = 0;
  uint64_t remote_accesses = 0;
  uint64_t local_locks = 0;
  uint64_t remote_locks = 0;
  uint64_t pages_allocated = 0;
  uint64_t splits = 0;
  uint64_t compactions = 0;
  uint64_t merges = 0;

  static EngineCounts read(const WorkerMetrics& metrics);
  EngineCounts since(const EngineCounts& before) const;
  void add(const EngineCounts& other);
};

struct RunResult {
  uint32_t node = 0;
  uint32_t worker = 0;
  double seconds = 0;  // measured time, from the end of the warm-up on
  std::array<uint64_t, kTransactionTypes> commits{};
  uint64_t user_aborts = 0;  // New-Orders with an unused item, rolled back (clause 2.4.1.4)
  uint64_t delivered_orders = 0;
  uint64_t skipped_deliveries = 0;  // districts without a new order (clause 2.7.4.2)
  std::string ended_early;          // why, or empty
  std::array<bench::LatencyHistogram, kTransactionTypes> latency;  // of commits, retries included
  EngineCounts engine;

  uint64_t total_commits() const;
  std::string to_json() const;
  static Result<RunResult> parse(std::string_view text);
};

}  // namespace atolldb::tpcc
