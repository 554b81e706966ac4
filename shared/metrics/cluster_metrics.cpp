#include "shared/metrics/cluster_metrics.h"

#include "shared/memory/control_layout.h"
#include "shared/memory/page_header.h"
#include "shared/metrics/device_families.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

uint64_t ready_storages(const ControlSegment& control) {
  uint64_t count = 0;
  for (const StorageControl& storage : control.storages) {
    // Relaxed: only counted; no other field is read.
    const uint32_t state = storage.state.load(std::memory_order_relaxed);
    if (state == static_cast<uint32_t>(StorageState::ready)) ++count;
  }
  return count;
}

void add_snapshots(MetricFamilies& families, const SnapshotMetrics& snapshots) {
  // Relaxed: for display only; each value is correct by itself.
  const auto value = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  };
  families.counter("atoll_snapshots_taken_total", "Snapshots taken, at the start included.")
      .sample(snapshots.taken.get());
  families.counter("atoll_snapshots_failed_total", "Attempts to take a snapshot that failed.")
      .sample(snapshots.failed.get());
  families.gauge("atoll_snapshot_running", "1 while a snapshot is being taken.")
      .sample(snapshots.is_taking.load(std::memory_order_relaxed) ? 1.0 : 0.0);
  families.gauge("atoll_snapshot_duration_seconds", "Time that the latest snapshot took.")
      .sample(static_cast<double>(value(snapshots.duration_us)) * 1e-6);
  families.gauge("atoll_snapshot_id", "Number of the newest snapshot; 0: there is none.")
      .sample(value(snapshots.id));
  families.gauge("atoll_snapshot_epoch", "Epoch of the newest snapshot.")
      .sample(value(snapshots.epoch));
  families
      .gauge("atoll_snapshot_timestamp_seconds",
             "When this run of the cluster took the newest snapshot; 0: it has taken none.")
      .sample(value(snapshots.taken_at_s));
  families
      .gauge("atoll_snapshot_written_bytes", "Size of the files written for the newest snapshot.")
      .sample(value(snapshots.pages_written) * kPageBytes);
  families.gauge("atoll_snapshot_files", "Files that pages of the newest snapshot lie in.")
      .sample(value(snapshots.files));
  families
      .gauge("atoll_snapshot_stored_bytes",
             "Size of these files, with pages that only older snapshots need.")
      .sample(value(snapshots.pages_stored) * kPageBytes);
}

}  // namespace

std::vector<prometheus::MetricFamily> ClusterMetrics::Collect() const {
  MetricFamilies families({});
  // Acquire pairs with the coordinator's release when it changed the state.
  const auto state = static_cast<ClusterState>(control_.state.load(std::memory_order_acquire));
  const EpochBlock& epochs = control_.epochs;
  families.gauge("atoll_cluster_running", "1 while the cluster accepts transactions.")
      .sample(state == ClusterState::running ? 1.0 : 0.0);
  families
      .gauge("atoll_cluster_recovering",
             "1 while the cluster recovers: transactions may only read snapshots.")
      .sample(state == ClusterState::recovering ? 1.0 : 0.0);
  // Relaxed: for display only.
  families.gauge("atoll_recovery_read_ratio", "Part of the logs that this start has read.")
      .sample(control_.recovered_percent.load(std::memory_order_relaxed) * 0.01);
  families.gauge("atoll_nodes", "Node processes of the cluster.")
      .sample(uint64_t{control_.node_count});
  families.gauge("atoll_storages", "Storages that procedures can use.")
      .sample(ready_storages(control_));
  families.counter("atoll_catalog_changes_total", "Storages created and dropped.")
      .sample(uint64_t{control_.catalog_version.load(std::memory_order_relaxed)});
  families
      .counter("atoll_restarts_total",
               "Times that the launcher has started the failed cluster again.")
      .sample(restarts_);
  families.counter("atoll_coordinator_heartbeats_total", "Signs of life of the coordinator.")
      .sample(control_.heartbeat.load(std::memory_order_relaxed));
  families.gauge("atoll_epoch_interval_seconds", "Time from one epoch to the next.")
      .sample(control_.epoch_interval_us * 1e-6);
  families.gauge("atoll_epoch_current", "Epoch in which transactions commit now.")
      .sample(epochs.current.load(std::memory_order_relaxed));
  families
      .gauge("atoll_epoch_durable",
             "Latest epoch whose commits are all durable (with durability off: final). Goes on "
             "while nothing commits.")
      .sample(latest_settled_epoch(epochs));
  families
      .gauge("atoll_durability_lag_seconds",
             "Age of the oldest epoch with commits that are not durable; 0: there are none.")
      .sample(static_cast<double>(durability_lag_us(control_)) * 1e-6);
  families.gauge("atoll_epoch_oldest_begin", "Oldest epoch in which a running thread began.")
      .sample(epochs.oldest_begin.load(std::memory_order_relaxed));
  if (snapshots_ != nullptr) add_snapshots(families, *snapshots_);
  if (device_ != nullptr) add_device(families, *device_);
  return families.take();
}

}  // namespace atolldb
