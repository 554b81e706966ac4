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
                                           const std::function<double()>& idle_cpus) {
  const Config::Gleaner& gleaner = config_.gleaner;
  enter(SnapshotPhase::installing, snapshot.id);
  auto report = install_pass(
      snapshot, {.free_percent = free_percent, .spares_hot = gleaner.keep_hot_pages}, idle_cpus);
  // Rounded up, so that it is above pool_low_water, below which the next snapshot is triggered.
  const uint32_t middle = (gleaner.pool_low_water + gleaner.pool_high_water + 1) / 2;
  if (report && report->kept_hot != 0 && pool_still_low(middle)) {
    drop_hot(snapshot, middle, idle_cpus, *report);
  }
  enter(report ? SnapshotPhase::done : SnapshotPhase::not_installed, snapshot.id);
  return report;
}

/// Runs a second pass, which also drops hot pages. Updates `report`, the result of the first pass.
/// If the second pass fails, `report` does not change.
void SnapshotJob::drop_hot(const SnapshotMetadata& snapshot, uint32_t free_percent,
                           const std::function<double()>& idle_cpus, InstallReport& report) {
  const auto second =
      install_pass(snapshot, {.free_percent = free_percent, .spares_hot = false}, idle_cpus);
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
  const auto node_count = static_cast<uint32_t>(config_.nodes.size());
  const auto shares = divide_storages(snapshot.storages, node_count);
  std::vector<InstallReport> reports(node_count);
  ATOLL_TRY(on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    Json roots = Json::array();
    for (const SnapshotStorage& storage : shares[node]) {
      roots.push_back(
          {{"id", storage.id}, {"root", storage.root.is_null() ? 0 : storage.root.word()}});
    }
    const Json body = {{"snapshot", snapshot.id},         {"epoch", snapshot.epoch},
                       {"storages", std::move(roots)},    {"free_percent", limits.free_percent},
                       {"spares_hot", limits.spares_hot}, {"timeout_ms", kInstallWaitMs}};
    ATOLL_ASSIGN(reports[node], install_on(node, body, idle_cpus));
    return {};
  }));
  InstallReport sum;
  for (const InstallReport& report : reports) sum.add(report);
  return sum;
}

/// Installs the share of one node. Repeats the same request until the share is done: the first
/// request begins the pass, and the later ones ask for its progress.
Result<InstallReport> SnapshotJob::install_on(uint32_t node, Json body,
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
    const InstallReport report = report_of(answer);
    {
      const std::lock_guard guard(mutex_);
      CHECK(node < progress_.size());
      Json progress = answer;
      // Removes the two values that have no sum over the nodes.
      progress.erase("oldest_left");
      progress.erase("longest_hold_ns");
      if (!progress_[node].is_object()) progress_[node] = Json::object();
      progress_[node].update(progress);
    }
    if (answer.value("done", false)) return report;
  }
}

}  // namespace atolldb
