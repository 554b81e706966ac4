// The pace of a snapshot job: how much of its work should be done at an instant. A job that is not
// urgent spreads its work over the time until the next snapshot is due, so that transactions keep
// an even share of the processors.
#pragma once

#include <chrono>
#include <cstdint>

#include "shared/config/config.h"

namespace atolldb {

/// A paced job ends when this part of the way to the next snapshot is over.
inline constexpr double kPacedPart = 0.7;

/// The work of a job, and what it shares the machine with.
struct PacedJob {
  uint64_t log_bytes = 0;  // log that the job reads, of the busiest node
  uint32_t nodes = 1;
  uint32_t threads = 0;  // mappers and reducers of all nodes
  uint32_t cpus = 0;     // processors that PaceReadings::idle_cpus counts; 0: it is unknown
};

/// The state of the cluster at one instant.
struct PaceReadings {
  std::chrono::steady_clock::time_point now;
  /// Log of the busiest node since the cluster began. It never decreases.
  uint64_t log_bytes = 0;
  /// Free part of a pool of volatile pages above gleaner.pool_low_water, of the fullest pool.
  double spare_pages = 0;
  /// Bytes that can be written beside the disk reserve, in the directory with the least room.
  uint64_t room_bytes = UINT64_MAX;
  double idle_cpus = 0;    // processors that do nothing
  bool is_urgent = false;  // something waits for the end of the job
};

/// A pure function of its readings, with one state: whether the job uses idle processors. Thread:
/// one at a time.
class SnapshotPace {
 public:
  /// `begin`: the readings at the begin of the job.
  SnapshotPace(const Config::Gleaner& config, const PacedJob& job, const PaceReadings& begin);

  /// Returns the part of the job's work that should be done now, in [0, 1]. A job that has done
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
