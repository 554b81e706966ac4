// Estimates how much of a recovery is done, and how long it will still take.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace atolldb {

/// Counters of a recovery, summed over all nodes.
struct RecoveryCounts {
  uint64_t log_bytes = 0;         // bytes of log to read
  uint64_t bytes_read = 0;        // bytes of log that were read
  uint64_t records_received = 0;  // records that reducers have received
  uint64_t records_composed = 0;  // received records that were applied, or elided by a merge
};

/// Least time before the first estimate. A rate over a shorter time is not meaningful.
inline constexpr std::chrono::seconds kLeastEstimateTime{1};

/// Returns the part of the recovery that is done, from 0 to 1. Composing the records of a log
/// counts as much as reading it.
double recovered_share(const RecoveryCounts& counts);

/// Returns the seconds until the end of the recovery at its rate so far, or nothing if it has just
/// begun. `elapsed`: time since the recovery began.
std::optional<uint64_t> recovery_eta_seconds(const RecoveryCounts& counts,
                                             std::chrono::nanoseconds elapsed);

/// Returns text like "41 % done: 820.0 of 1000.0 MiB of log read, 0 of 900 records composed;
/// about 25 s left".
std::string recovery_text(const RecoveryCounts& counts, std::chrono::nanoseconds elapsed);

}  // namespace atolldb
