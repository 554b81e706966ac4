// Flow control of a volatile pool. Free pages are used up while a snapshot job runs, and its
// install frees them. So transactions may take pages only at the rate at which the free pages last
// until then. A pool that fills slows transactions down early and evenly, and does not stop them
// when it is empty.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "coordinator/snapshots/job_progress.h"

namespace atolldb {

/// The state of one pool at one instant.
struct PoolReadings {
  std::chrono::steady_clock::time_point now;
  uint64_t total = 0;  // pages of the pool
  uint64_t free = 0;   // free pages
  uint64_t taken = 0;  // pages taken from the pool since the cluster began
  /// Pages that a job must write because of records in delta trees (R76). Many such records share a
  /// page of the pool, but nearly each is in a page of its own in the snapshot.
  uint64_t cold = 0;
  /// Part of the work of the job under way that is done, in [0, 1]; 0 also if that is unknown
  /// (JobProgress). Of the next job, if that overlaps the install.
  double progress = 0;
};

/// The flow control of one node's pool. A function of its readings and of the jobs that it is told
/// of. Thread: one at a time.
class PageFlow {
 public:
  /// A job begins; its install begins; it ends, with or without an install. `has_paused`: the job
  /// was paced, so its duration says nothing about that of an urgent job. `begin_next`, before
  /// `begin_install`: the next job begins, and overlaps the install. Its `begin_job` follows the
  /// `end_job` of this one.
  void begin_job(const PoolReadings& now);
  void begin_install(const PoolReadings& now, bool has_paused);
  void begin_next(const PoolReadings& now);
  void end_job(const PoolReadings& now);

  /// Returns how many pages the transactions of the node may take per second; nothing: no limit.
  /// REQUIRES: called every few milliseconds, because it also measures how many are taken.
  std::optional<double> limit(const PoolReadings& now);

  /// Returns whether a job must begin now, because the pool would be empty before a later job could
  /// free pages. Before the end of the first job, this is based on an assumed speed.
  bool is_short() const;
  /// Returns whether the next job must begin before the install of the current one, because the
  /// pages that are free at its end would not last for a job. Always false before the end of the
  /// first job.
  bool will_be_short() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase : uint8_t { idle, making, installing };

  void measure(const PoolReadings& now);
  uint64_t freed_by_install(const PoolReadings& now) const;
  double usable_pages() const;
  double expected_pages(const PoolReadings& now, double elapsed, double rest_s) const;
  double expected_make_s(double work) const;
  /// Expected times of the job that is made now.
  struct MakeTimes {
    double rest_s = 0;   // until its install begins, with a safety margin
    double whole_s = 0;  // from its begin to its install, without one
  };
  MakeTimes make_times(const PoolReadings& now) const;

  Phase phase_ = Phase::idle;
  PoolReadings phase_began_;                     // readings at the begin of the phase
  PoolReadings last_;                            // the latest readings
  std::optional<Clock::time_point> next_began_;  // begin of a job that overlaps the install
  Clock::time_point job_began_;  // call of begin_job: later than phase_began_ after an overlap
  JobProfile profile_;
  double used_ = 0;    // pages in use when the job began; its install can free only these
  double work_ = 0;    // of the job, in pages (work_of)
  double demand_ = 0;  // pages taken per second, averaged over about a second
  // Expected time from the begin of a job to the begin of its install, for each page of its work:
  // the maximum over the latest jobs, which decays with each job. 0: no job without pauses has come
  // so far.
  double make_s_per_page_ = 0;
  double install_s_ = 0;  // duration of the latest install
  // Part that an install frees of the pages in use when its job began: an average, in which each
  // install counts twice as much as the one before.
  double freed_part_ = 0;
};

}  // namespace atolldb
