// What one worker measured in a run: the part that all benchmarks have.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/common/latency_histogram.h"
#include "bench/job/engine_counts.h"

namespace atolldb::bench {

struct WorkerResult {
  /// `type_count`: kinds of transactions that are counted apart.
  explicit WorkerResult(uint32_t type_count)
      : commits(type_count), latency(type_count), durable_latency(type_count) {}

  uint32_t node = 0;
  uint32_t worker = 0;
  double seconds = 0;                     // measured time, from the end of the warm-up on
  std::string ended_early;                // why, or empty
  std::vector<uint64_t> commits;          // by type; with a log those that became durable
  std::vector<LatencyHistogram> latency;  // to the commit, by type, retries included
  // With a log; empty without one.
  std::vector<LatencyHistogram> durable_latency;  // to when the worker saw it durable, by type
  LatencyHistogram epoch_wait;                    // from the commit to the end of its epoch
  LatencyHistogram log_wait;                      // from there until it was durable
  EngineCounts engine;

  uint64_t total_commits() const;
  /// Adds all of it to an object; takes it out of one (throws nlohmann's exceptions).
  void put(nlohmann::json& json) const;
  void take(const nlohmann::json& json);
};

}  // namespace atolldb::bench
