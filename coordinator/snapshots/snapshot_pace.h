// Pacing of a snapshot job: computes how much of its work should be done at an instant. A job that
// is not urgent spreads its work over the time until the next snapshot is due. So transactions keep
// an even share of the processors.
#pragma once

#include <chrono>
#include <cstdint>

#include "shared/config/config.h"

namespace atolldb {

/// A paced job ends when this share of the time until the next snapshot is over.
inline constexpr double kPacedPart = 0.7;

/// The size of a job, and the machine that it shares with transactions.
struct PacedJob {
  uint64_t log_bytes = 0;  // bytes of log that the job reads on the busiest node
  uint32_t nodes = 1;
  uint32_t threads = 0;  // mappers and reducers of all nodes
  uint32_t cpus = 0;     // processors that PaceReadings::idle_cpus counts; 0: unknown
};

/// The state of the cluster at one instant.
struct PaceReadings {
  std::chrono::steady_clock::time_point now;
  /// Bytes of log that the busiest node has written since the cluster began. They never decrease.
  uint64_t log_bytes = 0;
  /// Share of free pages above gleaner.pool_low_water, in the pool with the fewest free pages.
  double spare_pages = 0;
  /// Bytes that can be written beside the disk reserve, in the directory with the least room.
  uint64_t room_bytes = UINT64_MAX;
  double idle_cpus = 0;    // number of processors that are idle
  bool is_urgent = false;  // something waits for the end of the job
};

/// The pace of one job. Apart from `uses_idle_cpus_` it is a pure function of its readings. Thread:
/// one at a time.
class SnapshotPace {
 public:
  /// `begin`: the readings when the job begins.
  SnapshotPace(const Config::Gleaner& config, const PacedJob& job, const PaceReadings& begin);

  /// Returns the share of the job's work that should be done now, in [0, 1]. A job that has done
  /// more pauses. 1: the job must not pause.
  double goal(const PaceReadings& now);

 private:
  bool has_idle_cpus(double idle_cpus);
  bool is_short_of_room(uint64_t room_bytes) const;

  const std::chrono::duration<double> interval_;
  const double log_volume_;
  const PacedJob job_;
  const PaceReadings begin_;
  bool uses_idle_cpus_ = false;
};

}  // namespace atolldb
