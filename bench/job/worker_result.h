// Results of one worker in a run: the part that all benchmarks share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/common/latency_histogram.h"
#include "bench/job/engine_counts.h"
#include "bench/job/pauses.h"
#include "shared/base/error.h"

namespace atolldb::bench {

struct WorkerResult {
  /// `type_count`: types of transactions that are counted separately.
  explicit WorkerResult(uint32_t type_count)
      : commits(type_count), latency(type_count), durable_latency(type_count) {}

  uint32_t node = 0;
  uint32_t worker = 0;
  double seconds = 0;                     // measured time, without the warm-up
  std::string ended_early;                // reason; empty: the run did not end early
  std::vector<uint64_t> commits;          // by type; with a log only commits that became durable
  std::vector<LatencyHistogram> latency;  // time to the commit, by type, including retries
  // The three members below are empty without a log.
  std::vector<LatencyHistogram>
      durable_latency;          // by type; from the begin until the worker saw it durable
  LatencyHistogram epoch_wait;  // from the commit to the end of its epoch
  LatencyHistogram log_wait;    // from the end of the epoch until the commit is durable
  EngineCounts engine;
  Pauses pauses;  // of the measured time, in monotonic_ns()

  uint64_t total_commits() const;
  /// `put` adds all members to an object; `take` reads them (throws nlohmann's exceptions).
  void put(nlohmann::json& json) const;
  void take(const nlohmann::json& json);
};

/// A counter of one benchmark, and its name in JSON.
template <typename Run>
struct RunCounter {
  const char* name;
  uint64_t Run::* member;
};

/// Adds the counters of one benchmark to the common results. `Run` derives from this type.
/// `Run::kCounters` lists the counters, and `Run::kBenchmark` names the benchmark.
template <typename Run>
struct CountingResult : WorkerResult {
  using WorkerResult::WorkerResult;

  std::string to_json() const {
    nlohmann::json json;
    for (const auto& [name, member] : Run::kCounters) {
      json[name] = static_cast<const Run&>(*this).*member;
    }
    put(json);
    return json.dump();
  }

  static Result<Run> parse(std::string_view text) {
    Run result;
    try {
      const auto json = nlohmann::json::parse(text);
      result.take(json);
      for (const auto& [name, member] : Run::kCounters) json.at(name).get_to(result.*member);
    } catch (const nlohmann::json::exception& error) {
      return make_error(
          ExitCode::failed,
          std::string(Run::kBenchmark) + ": a worker's result cannot be read: " + error.what());
    }
    return result;
  }
};

}  // namespace atolldb::bench
