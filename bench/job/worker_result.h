// Results of one worker in a run: the part that all benchmarks share.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/common/latency_histogram.h"
#include "bench/job/engine_counts.h"

namespace atolldb::bench {

struct WorkerResult {
  /// `type_count`: types of transactions that are counted separately.
  explicit WorkerResult(uint32_t type_count)
      : commits(type_count), latency(type_count), durable_latency(type_count) {}

  uint32_t node = 0;
  uint32_t worker = 0;
  double seconds = 0;                     // measured time, without the warm-up
  std::string ended_early;                // reason; empty: it did not
  std::vector<uint64_t> commits;          // by type; with a log only commits that became durable
  std::vector<LatencyHistogram> latency;  // to the commit, by type, including retries
  // Empty without a log.
  std::vector<LatencyHistogram>
      durable_latency;          // until the worker saw that it is durable, by type
  LatencyHistogram epoch_wait;  // from the commit to the end of its epoch
  LatencyHistogram log_wait;    // from there until it is durable
  EngineCounts engine;

  uint64_t total_commits() const;
  /// `put` adds all members to an object; `take` reads them (throws nlohmann's exceptions).
  void put(nlohmann::json& json) const;
  void take(const nlohmann::json& json);
};

}  // namespace atolldb::bench
