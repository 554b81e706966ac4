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
  explicit WorkerResult(uint32_t type_count) : commits(type_count), latency(type_count) {}

  uint32_t node = 0;
  uint32_t worker = 0;
  double seconds = 0;                     // measured time, from the end of the warm-up on
  std::string ended_early;                // why, or empty
  std::vector<uint64_t> commits;          // by type
  std::vector<LatencyHistogram> latency;  // of commits by type, retries included
  EngineCounts engine;

  uint64_t total_commits() const;
  /// Adds all of it to an object; takes it out of one (throws nlohmann's exceptions).
  void put(nlohmann::json& json) const;
  void take(const nlohmann::json& json);
};

}  // namespace atolldb::bench
