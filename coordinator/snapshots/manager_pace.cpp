// Pacing of snapshots: decides whether a job is paced, and takes the readings for SnapshotPace.
#include <algorithm>
#include <chrono>
#include <vector>

#include "coordinator/snapshots/gleaner_cpus.h"
#include "coordinator/snapshots/rewrites.h"
#include "coordinator/snapshots/snapshot_manager.h"
#include "shared/base/check.h"
#include "shared/config/job_threads.h"

namespace atolldb {

/// Returns whether the next job may pause. The attempt after a failed one must not pause: nothing
/// was deleted since, so log and disk are fuller than planned. A job with processors of its own
/// does not pause either, because it takes no time from workers. Such a job pauses only under a
/// quota, because its threads and the workers share the quota; cpu_count() is 0 then.
bool SnapshotManager::is_paced() const {
  CHECK(is_own_thread());
  if (!config_.gleaner.pacing || has_failed_) return false;
  const std::lock_guard guard(pace_mutex_);
  return idle_cpus_.cpu_count() == 0 || !has_dedicated_gleaner_cpus(config_);
}

std::vector<uint64_t> SnapshotManager::new_log_bytes(const std::vector<uint64_t>& written) {
  CHECK(is_own_thread() && written.size() == nodes_.size());
  snapshot_log_bytes_.resize(written.size(), 0);
  std::vector<uint64_t> bytes;
  for (size_t node = 0; node < written.size(); ++node) {
    bytes.push_back(written[node] - std::min(written[node], snapshot_log_bytes_[node]));
  }
  return bytes;
}

void SnapshotManager::set_pace(SnapshotTask& task) {
  CHECK(is_own_thread() && task.log_bytes.size() == nodes_.size());
  PacedJob job;
  job.nodes = static_cast<uint32_t>(config_.nodes.size());
  for (const NodeConfig& node : config_.nodes) {
    const JobThreads threads = running_threads(node);
    job.threads += threads.mappers + threads.reducers;
  }
  job.log_bytes = std::ranges::max(task.log_bytes);
  {
    const std::lock_guard guard(pace_mutex_);
    job.cpus = idle_cpus_.cpu_count();
    pace_.emplace(config_.gleaner, job, pace_readings());
  }
  task.goal = [this] { return paced_goal(); };
}

double SnapshotManager::paced_goal() {
  const std::lock_guard guard(pace_mutex_);
  CHECK(pace_.has_value());
  return pace_->goal(pace_readings());
}

/// Returns how many of the processors of snapshot jobs are idle, or 0 if that is unknown.
double SnapshotManager::idle_cpus() {
  const std::lock_guard guard(pace_mutex_);
  return idle_cpus_.measure(std::chrono::steady_clock::now());
}

uint64_t SnapshotManager::paused_us() const {
  uint64_t sum = 0;
  for (const MetricsSegment* metrics : metrics_) {
    sum += metrics->gleaner.paused_us.load(std::memory_order_relaxed);
  }
  return sum;
}

/// REQUIRES: pace_mutex_ is held.
PaceReadings SnapshotManager::pace_readings() {
  PaceReadings readings;
  readings.now = std::chrono::steady_clock::now();
  readings.log_bytes = loggers_.most_bytes();
  readings.spare_pages = spare_pages();
  readings.room_bytes = room_bytes(readings.now);
  readings.idle_cpus = idle_cpus_.measure(readings.now);
  readings.is_urgent = taker_->is_awaited() || is_first_snapshot_awaited() ||
                       loggers_.lacks_files() || pages_are_short();
  return readings;
}

/// Returns the room that was read less than a second ago, or reads it now. REQUIRES: pace_mutex_ is
/// held.
uint64_t SnapshotManager::room_bytes(std::chrono::steady_clock::time_point now) {
  constexpr std::chrono::seconds kPause{1};
  if (now < room_read_next_) return room_bytes_;
  room_read_next_ = now + kPause;
  // If the room cannot be read, this assumes a full disk, so the job does not pause.
  room_bytes_ = room_beside_reserve(config_).value_or(0);
  return room_bytes_;
}

double SnapshotManager::spare_pages() const {
  double spare = 1;
  for (const NodeShared* node : nodes_) {
    // Relaxed: the words are gauges.
    const auto total = static_cast<double>(node->pages_total.load(std::memory_order_relaxed));
    const auto free = static_cast<double>(node->pages_free.load(std::memory_order_relaxed));
    if (total > 0) spare = std::min(spare, free / total);
  }
  return spare - config_.gleaner.pool_low_water / 100.0;
}

}  // namespace atolldb
