// Counters of the engine over the measured time of a run.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <utility>

#include "shared/base/status.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb::bench {

struct EngineCounts {
  std::array<uint64_t, kStatusCount> aborts{};  // aborted attempts by reason; user_abort included
  uint64_t local_accesses = 0;
  uint64_t remote_accesses = 0;
  uint64_t local_locks = 0;
  uint64_t remote_locks = 0;
  uint64_t pages_allocated = 0;
  uint64_t splits = 0;
  uint64_t compactions = 0;
  uint64_t merges = 0;
  uint64_t log_bytes = 0;   // bytes of log records written
  uint64_t log_stalls = 0;  // waits for room in the log buffer

  static EngineCounts read(const WorkerMetrics& metrics);
  EngineCounts since(const EngineCounts& before) const;
  void add(const EngineCounts& other);

  using Counter = std::pair<const char*, uint64_t EngineCounts::*>;
  /// Returns the counters other than `aborts`, with their names in JSON.
  static std::span<const Counter> counters();
  /// `put` adds the counters other than `aborts` to an object. `take` reads them from it, and
  /// throws nlohmann's exceptions.
  void put(nlohmann::json& json) const;
  void take(const nlohmann::json& json);
};

}  // namespace atolldb::bench
