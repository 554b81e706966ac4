// The pace of the running cluster's snapshots: the readings for SnapshotPace.
#include <algorithm>
#include <chrono>
#include <vector>

#include "coordinator/snapshots/snapshot_manager.h"
#include "shared/base/check.h"

namespace atolldb {

void SnapshotManager::set_pace(SnapshotTask& task, const std::vector<uint64_t>& written) {
  CHECK(is_own_thread() && written.size() == nodes_.size());
  PacedJob job;
  for (const NodeConfig& node : config_.nodes) job.threads += node.mappers + node.reducers;
  // The logs since the newest snapshot. Those of earlier runs of the cluster are in a snapshot,
  // because its start-up ends with one.
  snapshot_log_bytes_.resize(written.size(), 0);
  for (size_t node = 0; node < written.size(); ++node) {
    task.log_bytes.push_back(written[node] - std::min(written[node], snapshot_log_bytes_[node]));
  }
  job.log_bytes = std::ranges::max(task.log_bytes);
  {
    const std::lock_guard guard(pace_mutex_);
    pace_.emplace(config_.gleaner, job, pace_readings());
  }
  task.goal = [this] { return paced_goal(); };
}

double SnapshotManager::paced_goal() {
  const std::lock_guard guard(pace_mutex_);
  CHECK(pace_.has_value());
  return pace_->goal(pace_readings());
}

/// REQUIRES: pace_mutex_ is held.
PaceReadings SnapshotManager::pace_readings() {
  PaceReadings readings;
  readings.now = std::chrono::steady_clock::now();
  readings.log_bytes = log_bytes();
  readings.spare_pages = spare_pages();
  readings.idle_cpus = idle_cpus_.measure(readings.now);
  readings.is_urgent =
      taker_->is_awaited() || is_first_snapshot_awaited() || lacks_log_files() || pool_is_low();
  return readings;
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
