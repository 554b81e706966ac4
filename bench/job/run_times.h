// The times of a run: part of the input of every run job.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shared/base/error.h"

namespace atolldb::bench {

struct RunTimes {
  uint64_t run_number = 1;  // ascending from 1 over the life of the database
  uint64_t start_ns = 0;    // monotonic_ns() at which all workers start; 0: at once
  uint64_t warmup_ms = 0;
  uint64_t run_ms = 0;

  /// Returns the seed of one worker or client in this run. `seed`: that of the benchmark. `number`:
  /// of the worker or client among those of its node.
  uint64_t seed_of(uint64_t seed, uint32_t node, uint32_t number) const {
    return (seed * 1'000'003 + run_number) * 65'537 + (uint64_t{node} << 16 | number);
  }

  /// Longest warm-up, and longest run.
  static constexpr uint64_t kMaxMs = 86'400'000;
  /// The workers wait at most this time for the common start.
  static constexpr uint64_t kMaxStartDelayNs = 60'000'000'000;
  /// Checks the times of a run that begins now on this machine. `take` cannot: the input of another
  /// job may have times of a client's clock. `benchmark`: prefix of the error. Error: usage.
  Result<void> check(std::string_view benchmark) const;

  /// `put` adds all members to an object; `take` reads them (throws nlohmann's exceptions).
  void put(nlohmann::json& json) const;
  void take(const nlohmann::json& json);
};

}  // namespace atolldb::bench
