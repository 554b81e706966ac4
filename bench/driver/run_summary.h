// The merged results of all workers of one run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/driver/epoch_stages.h"
#include "bench/job/worker_result.h"
#include "shared/base/error.h"

namespace atolldb::bench {

struct NodeSummary {
  double tps = 0;
  EngineCounts engine;
};

struct RunSummary {
  RunSummary(uint32_t node_count, uint32_t type_count)
      : nodes(node_count),
        commits(type_count),
        tps_of_type(type_count),
        latency(type_count),
        durable_latency(type_count) {}

  double seconds = 0;  // longest measured time of a worker
  double tps = 0;      // committed transactions, all types
  std::vector<NodeSummary> nodes;
  std::vector<uint64_t> commits;  // by type
  std::vector<double> tps_of_type;
  std::vector<LatencyHistogram> latency;  // time to the commit, by type
  // The three members below are empty without a log. WorkerResult explains them.
  std::vector<LatencyHistogram> durable_latency;
  LatencyHistogram epoch_wait;
  LatencyHistogram log_wait;
  EngineCounts engine;
  EpochStages stages;  // stages of the epochs of the run; empty without a log
  /// Commits per second of the whole cluster, in each whole second of the measured time.
  std::vector<double> per_second;
  /// Times in which no worker counted a commit, in monotonic_ns(). No value: no worker is merged.
  std::optional<Pauses> pauses;
  std::string ended_early;

  /// Returns an error if the result names a node that does not exist.
  Result<void> merge(const WorkerResult& result, const std::string& command);
};

/// Returns the latencies of all types together.
LatencyHistogram merged(const std::vector<LatencyHistogram>& latency);

/// Returns the median throughput. `runs`: pointers to RunSummary or a derived type.
template <typename Runs>
double median_tps(const Runs& runs) {
  std::vector<double> sorted;
  for (const auto& run : runs) sorted.push_back(run->tps);
  std::ranges::sort(sorted);
  const size_t count = sorted.size();
  if (count == 0) return 0;
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/// Returns the run with the median throughput; of two runs in the middle, the slower one. REQUIRES:
/// there is a run.
template <typename Runs>
const auto& median_run(const Runs& runs) {
  std::vector<decltype(runs.front().get())> sorted;
  for (const auto& run : runs) sorted.push_back(run.get());
  std::ranges::sort(sorted, [](const auto* a, const auto* b) { return a->tps < b->tps; });
  return *sorted[(sorted.size() - 1) / 2];
}

}  // namespace atolldb::bench
