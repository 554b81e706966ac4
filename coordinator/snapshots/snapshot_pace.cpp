#include "coordinator/snapshots/snapshot_pace.h"

#include <algorithm>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// A paced job reads at least this many bytes of its log per second. At this rate its threads
/// already sleep most of the time. A slower job would only delay the deletion of logs.
constexpr double kSlowestBytesPerS = 16 << 20;
/// A job with more log than this multiple of gleaner.log_volume is late, so it does not pause.
constexpr double kLateVolumes = 2;
/// A job that uses idle processors stops using them when fewer than this number are idle.
constexpr double kLittleIdle = 0.5;
/// A job begins to use idle processors if there is one for each of its threads, or if this share of
/// all processors is idle.
constexpr double kMostlyIdle = 0.9;
/// A job whose room is less than this multiple of its log does not pause. Its sorted runs and its
/// pages are each about as large as the log. Logs can be deleted only when the job has ended.
constexpr double kRoomPerLog = 2;
/// Room above this is always enough, because it cannot be filled before the next reading. Without
/// this limit, jobs would never pause if gleaner.log_volume is large.
constexpr double kEnoughRoomBytes = uint64_t{16} << 30;

}  // namespace

SnapshotPace::SnapshotPace(const Config::Gleaner& config, const PacedJob& job,
                           const PaceReadings& begin)
    : interval_(config.interval.get()),
      log_volume_(static_cast<double>(config.log_volume)),
      job_(job),
      begin_(begin) {
  CHECK(interval_.count() > 0 && log_volume_ > 0 && job.threads > 0 && job.nodes > 0);
}

double SnapshotPace::goal(const PaceReadings& now) {
  CHECK(now.now >= begin_.now);
  const bool has_idle = has_idle_cpus(now.idle_cpus);
  const auto planned = static_cast<double>(job_.log_bytes);
  const bool is_late = planned > kLateVolumes * log_volume_;
  if (now.is_urgent || is_late || has_idle || is_short_of_room(now.room_bytes)) return 1;
  if (begin_.spare_pages <= 0 || now.spare_pages <= 0) return 1;
  // Three measures of how close the next snapshot is: by time, by log volume and by free pages. The
  // next snapshot is due when one of them is 1.
  const std::chrono::duration<double> elapsed = now.now - begin_.now;
  const double time_part = elapsed / interval_;
  const double log_part =
      (static_cast<double>(now.log_bytes) - static_cast<double>(begin_.log_bytes)) / log_volume_;
  const double page_part = 1 - now.spare_pages / begin_.spare_pages;
  const double due_part = std::max({time_part, log_part, page_part});
  const double least = kSlowestBytesPerS * elapsed.count() / std::max(planned, 1.0);
  return std::clamp(std::max(due_part / kPacedPart, least), 0.0, 1.0);
}

/// Returns whether the job uses idle processors. The limits for begin and end differ, because a job
/// that does not pause makes idle processors busy.
bool SnapshotPace::has_idle_cpus(double idle_cpus) {
  if (job_.cpus == 0) return false;
  const double wanted = std::min<double>(job_.threads, kMostlyIdle * job_.cpus);
  uses_idle_cpus_ = idle_cpus >= (uses_idle_cpus_ ? kLittleIdle : wanted);
  return uses_idle_cpus_;
}

/// Returns whether the room is too small for a job that pauses. Multiplies by the number of nodes,
/// because all nodes may write to one file system.
bool SnapshotPace::is_short_of_room(uint64_t room_bytes) const {
  const double needed = kRoomPerLog * static_cast<double>(job_.log_bytes) * job_.nodes;
  return static_cast<double>(room_bytes) < std::min(needed, kEnoughRoomBytes);
}

}  // namespace atolldb
