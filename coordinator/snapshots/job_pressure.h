// Decides whether a snapshot job is urgent. Only a job that is not urgent lets workers and loggers
// have precedence over its threads.
#pragma once

#include <cstdint>

#include "shared/base/check.h"

namespace atolldb {

/// A job is urgent if the log behind it exceeds gleaner.log_volume by this factor.
inline constexpr uint64_t kMaxBacklogVolumes = 2;

/// The state of a running cluster when a job begins.
struct JobPressure {
  bool lacks_pages = false;      // a pool is low or may become low soon
  bool lacks_log_files = false;  // only the snapshot lets log files be deleted
  bool is_awaited = false;       // a transaction waits for the first snapshot
  uint64_t log_bytes = 0;        // log of the busiest node since the begin of the job before
  uint64_t log_volume = 0;       // gleaner.log_volume
};

/// Returns whether the job yields. An urgent job never does. On a busy machine a yielding job takes
/// longer, so the next one has more log to read. The limit on the backlog ends this growth.
constexpr bool may_yield(const JobPressure& pressure) {
  CHECK(pressure.log_volume != 0);
  const bool is_behind = pressure.log_bytes > kMaxBacklogVolumes * pressure.log_volume;
  return !pressure.lacks_pages && !pressure.lacks_log_files && !pressure.is_awaited && !is_behind;
}

}  // namespace atolldb
