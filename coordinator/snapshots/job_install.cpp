// Installation of a snapshot beside the volatile pages of the running cluster (R44).
#include <algorithm>
#include <cmath>
#include <utility>

#include "coordinator/snapshots/snapshot_job.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Longest time that the node waits in one request for the end of the pass, in ms. It bounds the
/// delay of progress reports and of a cancellation.
constexpr uint64_t kInstallWaitMs = 200;

InstallReport report_of(const Json& answer) {
  InstallReport report;
  for (const InstallCounter& each : kInstallCounters) {
    report.*each.value = answer.value(each.name, uint64_t{0});
  }
  report.longest_hold_ns = answer.value("longest_hold_ns", uint64_t{0});
  report.oldest_left = answer.value("oldest_left", InstallReport::kNoSnapshot);
  return report;
}

}  // namespace

std::vector<std::vector<SnapshotStorage>> divide_storages(std::vector<SnapshotStorage> storages,
                                                          uint32_t node_count) {
  std::ranges::sort(storages, [](const SnapshotStorage& one, const SnapshotStorage& other) {
    return std::pair(other.records, one.id) < std::pair(one.records, other.id);
  });
  CHECK(node_count != 0);
  std::vector<std::vector<SnapshotStorage>> shares(node_count);
  for (size_t i = 0; i < storages.size(); ++i) {
    shares[i % node_count].push_back(std::move(storages[i]));
  }
  return shares;
}

uint32_t percent_to_free(uint32_t high_water, double growth) {
  /// The job takes only a part of the time between two installs.
  constexpr double kCyclePerJob = 1.5;
  constexpr uint32_t kMostPercent = 90;
  CHECK(high_water <= 100);
  const double wanted = high_water + 100 * kCyclePerJob * std::max(growth, 0.0);
  return static_cast<uint32_t>(std::min<double>(wanted, std::max(kMostPercent, high_water)));
}

uint32_t next_installers(uint32_t now, double idle_cpus, uint32_t most) {
  /// With fewer idle processors, other threads need the processor of one installer thread.
  constexpr double kLittleIdle = 0.5;
  CHECK(now >= 1 && now <= most && idle_cpus >= 0);
  if (idle_cpus < kLittleIdle) return std::max(now - 1, 1u);
  return static_cast<uint32_t>(std::min(now + std::floor(idle_cpus), static_cast<double>(most)));
}

Result<InstallReport> SnapshotJob::install(const SnapshotMetadata& snapshot, uint32_t free_percent,
                                           const PoolStillLow& pool_still_low,
                                           const std::function<double()>& idle_cpus,
                                           const SnapshotPlan* next) {
  CHECK(next == nullptr || (next->base == snapshot.id && next->base_epoch == snapshot.epoch));
  set_next(next);
  {
    const std::lock_guard guard(mutex_);
    is_overlapped_ = snapshot_ > snapshot.id;
    CHECK(is_overlapped_ || next == nullptr);
    installing_ = is_overlapped_ ? snapshot.id : 0;
  }
  if (is_overlapped_) {
    auto report = install_passes(snapshot, free_percent, pool_still_low, idle_cpus);
    const std::lock_guard guard(mutex_);
    installing_ = 0;
    return report;
  }
  enter(SnapshotPhase::installing, snapshot.id);
  auto report = install_passes(snapshot, free_percent, pool_still_low, idle_cpus);
  enter(report ? SnapshotPhase::done : SnapshotPhase::not_installed, snapshot.id);
  return report;
}

/// Sets the plan of a later job that has begun, for the passes of an install.
void SnapshotJob::set_next(const SnapshotPlan* next) {
  next_bounds_.clear();
  if (next == nullptr) return;
  for (const PlannedStorage& storage : next->storages) {
    if (storage.type != StorageType::mastertree || storage.partitions.size() < 2) continue;
    std::vector<uint64_t>& bounds = next_bounds_[storage.id];
    for (size_t i = 1; i < storage.partitions.size(); ++i) {
      bounds.push_back(first_slice_of(storage.partitions[i]));
    }
    CHECK(std::ranges::is_sorted(bounds));
  }
}

/// Lists the storages for a request to install them.
Json SnapshotJob::roots_of(const std::vector<SnapshotStorage>& storages) const {
  Json roots = Json::array();
  for (const SnapshotStorage& storage : storages) {
    Json& root = roots.emplace_back(Json::object());
    root["id"] = storage.id;
    root["root"] = storage.root.is_null() ? 0 : storage.root.word();
    const auto bounds = next_bounds_.find(storage.id);
    if (bounds != next_bounds_.end()) root["next_bounds"] = bounds->second;
  }
  return roots;
}

/// The passes of an install, in their order.
Result<InstallReport> SnapshotJob::install_passes(const SnapshotMetadata& snapshot,
                                                  uint32_t free_percent,
                                                  const PoolStillLow& pool_still_low,
                                                  const std::function<double()>& idle_cpus) {
  const Config::Gleaner& gleaner = config_.gleaner;
  changed_bytes_.clear();
  // A drain that still runs on some node would clear marks while ranges are divided (R76, R80).
  if (open_drain_) {
    const OpenDrain open = *open_drain_;
    ATOLL_TRY(ask_to_install(open.snapshot, {}, open.shares, true, idle_cpus));
    open_drain_.reset();
  }
  ATOLL_ASSIGN(
      auto report,
      install_pass(snapshot, {.free_percent = free_percent, .spares_hot = gleaner.keep_hot_pages},
                   idle_cpus));
  drain(snapshot, idle_cpus, report);
  // Rounded up, so that it is above pool_low_water, below which the next snapshot is triggered.
  const uint32_t middle = (gleaner.pool_low_water + gleaner.pool_high_water + 1) / 2;
  if (report.kept_hot != 0 && pool_still_low(middle)) {
    drop_hot(snapshot, middle, idle_cpus, report);
  }
  return report;
}

/// Removes the records that the snapshot contains from the delta trees, on all nodes at once (R78):
/// first each node has stored all pointers of its share of the storages. Leaves out storages with
/// pointers that could not be moved to the snapshot, because there the records still count. Adds to
/// `report`, the result of the pass before.
void SnapshotJob::drain(const SnapshotMetadata& snapshot, const std::function<double()>& idle_cpus,
                        InstallReport& report) {
  std::vector<SnapshotStorage> storages;
  for (const SnapshotStorage& storage : snapshot.storages) {
    if (may_drain(storage.id)) storages.push_back(storage);
  }
  if (storages.empty()) return;
  const std::vector shares(config_.nodes.size(), storages);
  const auto drained = ask_to_install(snapshot, {}, shares, true, idle_cpus);
  if (!drained) {
    open_drain_ = OpenDrain{snapshot, shares};
    logger_->warn("snapshot {}: the delta trees are not drained: {}", snapshot.id,
                  drained.error().message);
    return;
  }
  report.drained = drained->drained;
  report.reclaimed += drained->reclaimed;
  report.longest_hold_ns = std::max(report.longest_hold_ns, drained->longest_hold_ns);
}

/// Runs a second pass, which also drops hot pages. Updates `report`, the result of the first pass.
/// If the second pass fails, `report` does not change.
void SnapshotJob::drop_hot(const SnapshotMetadata& snapshot, uint32_t free_percent,
                           const std::function<double()>& idle_cpus, InstallReport& report) {
  // The second pass visits the same pages, so it must not count their changes again.
  const auto changed = changed_bytes_;
  const auto second =
      install_pass(snapshot, {.free_percent = free_percent, .spares_hot = false}, idle_cpus);
  changed_bytes_ = changed;
  if (!second) {
    logger_->warn("snapshot {}: the second pass, which drops hot pages, has failed: {}",
                  snapshot.id, second.error().message);
    return;
  }
  report.dropped_hot = second->dropped;
  report.dropped += second->dropped;
  report.reclaimed += second->reclaimed;
  report.kept_hot -= std::min(report.kept_hot, second->dropped);
  report.kept = second->kept;
  report.busy = second->busy;
  report.longest_hold_ns = std::max(report.longest_hold_ns, second->longest_hold_ns);
  report.oldest_left = second->oldest_left;  // the second pass visits all pointers, too
}

/// Installs on all nodes at once; each node does its share of the storages.
Result<InstallReport> SnapshotJob::install_pass(const SnapshotMetadata& snapshot,
                                                const DropLimits& limits,
                                                const std::function<double()>& idle_cpus) {
  CHECK(snapshot.id != 0 && limits.free_percent <= 100);
  const auto shares =
      divide_storages(snapshot.storages, static_cast<uint32_t>(config_.nodes.size()));
  return ask_to_install(snapshot, limits, shares, false, idle_cpus);
}

/// Runs a pass on all nodes at once. `shares`: the storages of each node. `drains`: the pass
/// removes records from delta trees, and installs nothing.
Result<InstallReport> SnapshotJob::ask_to_install(
    const SnapshotMetadata& snapshot, const DropLimits& limits,
    const std::vector<std::vector<SnapshotStorage>>& shares, bool drains,
    const std::function<double()>& idle_cpus) {
  CHECK(shares.size() == config_.nodes.size());
  std::vector<NodeInstall> installs(shares.size());
  ATOLL_TRY(on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    const Json body = {{"snapshot", snapshot.id},
                       {"epoch", snapshot.epoch},
                       {"base_epoch", snapshot.base_epoch},
                       {"storages", roots_of(shares[node])},
                       {"free_percent", limits.free_percent},
                       {"spares_hot", limits.spares_hot},
                       {"drains", drains},
                       {"timeout_ms", kInstallWaitMs}};
    ATOLL_ASSIGN(installs[node], install_on(node, body, idle_cpus));
    return {};
  }));
  InstallReport sum;
  if (!drains) drainable_.clear();
  for (const NodeInstall& install : installs) {
    sum.add(install.report);
    if (!drains) record_drainable(install);
    for (const auto& [storage, bytes] : install.changed) changed_bytes_[storage] += bytes;
  }
  return sum;
}

void SnapshotJob::record_drainable(const NodeInstall& install) {
  for (const uint32_t storage : install.drainable) {
    drainable_.insert(storage);
    incomplete_.erase(storage);
  }
  for (const uint32_t storage : install.incomplete) ++incomplete_[storage];
}

/// Adds an answer of the node to the progress that `status` shows.
void SnapshotJob::record_progress(uint32_t node, Json answer) {
  // Removes the values that have no sum over the nodes.
  for (const char* name :
       {"oldest_left", "longest_hold_ns", "drainable", "incomplete", "changed", "changed_bytes"}) {
    answer.erase(name);
  }
  const std::lock_guard guard(mutex_);
  CHECK(node < progress_.size());
  if (!progress_[node].is_object()) progress_[node] = Json::object();
  progress_[node].update(answer);
}

/// Installs the share of one node. Repeats the same request until the share is done: the first
/// request begins the pass, and the later ones ask for its progress.
Result<SnapshotJob::NodeInstall> SnapshotJob::install_on(uint32_t node, Json body,
                                                         const std::function<double()>& idle_cpus) {
  const uint32_t most = config_.nodes[node].installers;
  const auto nodes = static_cast<double>(config_.nodes.size());
  uint32_t threads = 1;
  for (;;) {
    threads = most == 1 ? 1 : next_installers(threads, idle_cpus() / nodes, most);
    body["threads"] = threads;
    if (is_cancelled_.load(std::memory_order_relaxed)) {
      return make_error(ExitCode::failed, "the installation was cancelled");
    }
    ATOLL_ASSIGN(const auto answer, call_node_(node, ControlOperation::snapshot_install, body));
    if (!is_overlapped_) record_progress(node, answer);
    if (answer.value("done", false)) {
      return NodeInstall{report_of(answer), answer.value("drainable", std::vector<uint32_t>()),
                         answer.value("incomplete", std::vector<uint32_t>()),
                         answer.value("changed", std::vector<std::pair<uint32_t, uint64_t>>())};
    }
  }
}

}  // namespace atolldb
