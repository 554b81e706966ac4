#include "coordinator/snapshots/snapshot_pace.h"

#include <algorithm>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// A job does at least so much of its log per second. Its threads then sleep most of the time, and
/// a longer job would only delay the deletion of logs.
constexpr double kSlowestBytesPerS = 16 << 20;
/// A job with more log than this many volumes is late, so it does not pause.
constexpr double kLateVolumes = 2;
/// While a job uses idle processors, it goes on until less than this part of one is idle.
constexpr double kLittleIdle = 0.5;
/// A job begins to use idle processors if it has one for each thread, or this part of all.
constexpr double kMostlyIdle = 0.9;
/// A job with less room than this many times its log hurries. Its sorted runs and its pages have
/// about the size of the log each. Only its end lets logs be deleted.
constexpr double kRoomPerLog = 2;
/// More room than this is always enough, because it is not filled before the next reading.
/// Otherwise a large gleaner.log_volume would switch the pace off.
constexpr double kEnoughRoomBytes = uint64_t{16} << 30;

}  // namespace

SnapshotPace::SnapshotPace(const Config::Gleaner& config, const PacedJob& job,
                           const PaceReadings& begin)
    : interval_(config.interval),
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
  // The next snapshot is due when the first of these parts is 1.
  const std::chrono::duration<double> elapsed = now.now - begin_.now;
  const double time_part = elapsed / interval_;
  const double log_part =
      (static_cast<double>(now.log_bytes) - static_cast<double>(begin_.log_bytes)) / log_volume_;
  const double page_part = 1 - now.spare_pages / begin_.spare_pages;
  const double due_part = std::max({time_part, log_part, page_part});
  const double least = kSlowestBytesPerS * elapsed.count() / std::max(planned, 1.0);
  return std::clamp(std::max(due_part / kPacedPart, least), 0.0, 1.0);
}

/// The two limits differ, because a job that does not pause takes processors that were idle.
bool SnapshotPace::has_idle_cpus(double idle_cpus) {
  if (job_.cpus == 0) return false;
  const double wanted = std::min<double>(job_.threads, kMostlyIdle * job_.cpus);
  uses_idle_cpus_ = idle_cpus >= (uses_idle_cpus_ ? kLittleIdle : wanted);
  return uses_idle_cpus_;
}

/// All nodes may write to one file system.
bool SnapshotPace::is_short_of_room(uint64_t room_bytes) const {
  const double needed = kRoomPerLog * static_cast<double>(job_.log_bytes) * job_.nodes;
  return static_cast<double>(room_bytes) < std::min(needed, kEnoughRoomBytes);
}

}  // namespace atolldb
