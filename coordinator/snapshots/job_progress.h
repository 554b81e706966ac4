// Which part of a running snapshot job is done, from the metrics of all nodes, and which part of
// its time has passed then. The two differ: mapping counts as half of the work, but takes a quarter
// of the time if many pages of the base are cold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// Thread: one at a time.
class JobProgress {
 public:
  /// REQUIRES: the segments outlive this object.
  explicit JobProgress(const std::vector<const MetricsSegment*>& metrics)
      : metrics_(metrics), begin_(metrics.size()) {}

  /// A job begins, whose mappers read about `log_bytes` on all nodes together.
  void begin(uint64_t log_bytes);
  /// Returns the part of the job's work that is done, in [0, 1]. Returns 0 if the job has paused:
  /// its speed then says nothing about the rest. The work is counted as by JobThrottle
  /// (work_of_mappers, work_of_composers). Nodes publish their counters with each heartbeat, so the
  /// result is that of a time up to 0.1 s ago.
  double done();

 private:
  /// Counters of a node, since the cluster began.
  struct Counts {
    uint64_t read = 0;      // bytes of log
    uint64_t received = 0;  // records that reducers have received
    uint64_t applied = 0;   // records that were composed or elided
    uint64_t paused_us = 0;
  };
  static Counts counts_of(const GleanerMetrics& metrics);

  const std::vector<const MetricsSegment*>& metrics_;
  /// By node: the counters before the job. A node may publish the last counts of the job before
  /// only after this job has begun. So `done` updates the counters of a node until its mappers have
  /// read something. A node publishes all its counters together.
  std::vector<Counts> begin_;
  uint64_t log_bytes_ = 0;
};

/// Which part of a job's time has passed at which progress. Jobs of one workload are alike, so the
/// latest job tells this for the next one. Until a job has ended, a quarter of the time is assumed
/// to pass without progress, for plan and captures, and the rest in proportion to the work. Thread:
/// one at a time.
class JobProfile {
 public:
  JobProfile();

  /// A job begins, with this part of its work done. It is not 0 if the job overlapped an install.
  void begin(double progress);
  /// Records the progress `worked_s` seconds after the begin. Times do not decrease.
  void record(double progress, double worked_s);
  /// The job has taken this time since its begin. The next ones are expected to be like it, unless
  /// too little of its progress was published.
  void learn(double worked_s);

  /// Returns which part of the job's time since its begin has passed at this progress, in [0, 1].
  double passed(double progress) const;

 private:
  static constexpr size_t kMarks = 16;  // a job of one second publishes its progress ten times
  // A job with fewer marks has not even shown the end of its mapping.
  static constexpr size_t kLeastMarks = kMarks / 2 + 1;
  using Marks = std::array<double, kMarks + 1>;  // element i: at i/kMarks of the work

  double part_at(double progress) const;

  Marks parts_;            // parts of the time of the latest job
  Marks reached_s_{};      // times of this job since its begin; valid for i < reached_
  size_t first_ = 0;       // number of marks that it had reached at its begin
  size_t reached_ = 0;     // number of marks that this job has reached
  double begin_part_ = 0;  // part_at() of the begin of this job
};

}  // namespace atolldb
