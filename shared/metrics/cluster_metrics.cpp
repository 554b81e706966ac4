#include "shared/metrics/cluster_metrics.h"

#include <chrono>

#include "shared/base/check.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/page_header.h"
#include "shared/metrics/device_watch.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

double ready_storages(const ControlSegment& control) {
  double count = 0;
  for (const StorageControl& storage : control.storages) {
    // Relaxed, because this reads no other field of the storage.
    const uint32_t state = storage.state.load(std::memory_order_relaxed);
    if (state == static_cast<uint32_t>(StorageState::ready)) ++count;
  }
  return count;
}

constexpr Metric<SnapshotMetrics> kSnapshotMetrics[] = {
    {"atoll_snapshots_taken_total", "Snapshots taken, including those at the start of the cluster.",
     field<&SnapshotMetrics::taken>},
    {"atoll_snapshots_failed_total", "Failed attempts to take a snapshot.",
     field<&SnapshotMetrics::failed>},
    {"atoll_snapshot_running", "1 while a snapshot is being taken.",
     field<&SnapshotMetrics::is_taking>},
    {"atoll_snapshot_duration_seconds", "Duration of the latest snapshot that was taken.",
     field<&SnapshotMetrics::duration_us>, 1e-6},
    {"atoll_snapshot_id", "Id of the newest snapshot, or 0 without a snapshot.",
     field<&SnapshotMetrics::id>},
    {"atoll_snapshot_epoch", "Epoch of the newest snapshot.", field<&SnapshotMetrics::epoch>},
    {"atoll_snapshot_timestamp_seconds",
     "Time at which this run of the cluster took the newest snapshot, or 0 if an earlier run did.",
     field<&SnapshotMetrics::taken_at_s>},
    {"atoll_snapshot_written_bytes", "Size of the files written for the newest snapshot.",
     field<&SnapshotMetrics::pages_written>, kPageBytes},
    {"atoll_snapshot_files", "Number of files that contain pages of the newest snapshot.",
     field<&SnapshotMetrics::files>},
    {"atoll_snapshot_stored_bytes",
     "Size of the files that contain pages of the newest snapshot, including pages that only older "
     "snapshots need.",
     field<&SnapshotMetrics::pages_stored>, kPageBytes},
    {"atoll_snapshot_live_bytes", "Size of the pages that the newest snapshot uses.",
     field<&SnapshotMetrics::pages_live>, kPageBytes},
    {"atoll_snapshot_space_amplification",
     "Size of the files that contain pages of the newest snapshot, divided by the size of the "
     "pages that it uses.",
     field<&SnapshotMetrics::space_percent>, 0.01},
    {"atoll_snapshot_space_amplification_target",
     "Space amplification above which snapshots rewrite files: gleaner.space_percent.",
     field<&SnapshotMetrics::target_space_percent>, 0.01},
    {"atoll_snapshot_rewrite_lacks_room",
     "1 if files should be rewritten, but their pages do not fit beside gleaner.disk_reserve.",
     field<&SnapshotMetrics::lacks_room>},
    {"atoll_snapshot_rewritten_bytes_total",
     "Size of the pages that rewrites have copied so that older files could be deleted.",
     field<&SnapshotMetrics::pages_rewritten>, kPageBytes},
};

constexpr Metric<CheckpointMetrics> kCheckpointMetrics[] = {
    {"atoll_checkpoints_taken_total", "Checkpoints taken.", field<&CheckpointMetrics::taken>},
    {"atoll_checkpoints_failed_total", "Failed attempts to take a checkpoint.",
     field<&CheckpointMetrics::failed>},
    {"atoll_checkpoint_running", "1 while a checkpoint is being taken.",
     field<&CheckpointMetrics::is_taking>},
    {"atoll_checkpoint_duration_seconds", "Duration of the latest checkpoint that was taken.",
     field<&CheckpointMetrics::duration_us>, 1e-6},
    {"atoll_checkpoint_id", "Id of the newest checkpoint, or 0 without a checkpoint.",
     field<&CheckpointMetrics::id>},
    {"atoll_checkpoint_replay_epoch",
     "Epoch from which on a recovery from the newest checkpoint replays the log.",
     field<&CheckpointMetrics::replay_epoch>},
    {"atoll_checkpoint_timestamp_seconds",
     "Time at which this run of the cluster took the newest checkpoint, or 0 if an earlier run "
     "did.",
     field<&CheckpointMetrics::taken_at_s>},
    {"atoll_checkpoint_bytes", "Size of the files of the newest checkpoint.",
     field<&CheckpointMetrics::bytes>},
    {"atoll_checkpoint_records", "Records in the newest checkpoint.",
     field<&CheckpointMetrics::records>},
    {"atoll_checkpoint_files", "Files of the newest checkpoint.", field<&CheckpointMetrics::files>},
    {"atoll_replay_duration_seconds", "Duration of the replay of this start of the cluster.",
     field<&CheckpointMetrics::replay_us>, 1e-6},
};

template <auto kSince>
double age(const ArchiveMetrics& archive) {
  return static_cast<double>(seconds_since(archive.*kSince));
}

constexpr Metric<ArchiveMetrics> kArchiveMetrics[] = {
    {"atoll_archive_files_total", "Log files stored in the archive.",
     field<&ArchiveMetrics::files>},
    {"atoll_archive_bytes_total", "Bytes of log files stored in the archive.",
     field<&ArchiveMetrics::bytes>},
    {"atoll_archive_failures_total", "Failed attempts to archive.",
     field<&ArchiveMetrics::failures>},
    {"atoll_archive_waiting_files", "Closed log files that the archive does not have yet.",
     field<&ArchiveMetrics::waiting_files>},
    {"atoll_archive_waiting_bytes", "Bytes of closed log files that the archive does not have yet.",
     field<&ArchiveMetrics::waiting_bytes>},
    {"atoll_archive_lag_seconds",
     "Time that the oldest closed log file has waited for the archive, or 0 if none waits.",
     age<&ArchiveMetrics::waiting_since_s>},
    {"atoll_archive_failing_seconds",
     "Time since the first of the failures without a success between them, or 0.",
     age<&ArchiveMetrics::failing_since_s>},
    {"atoll_archive_epoch", "Last epoch that the archive has completely.",
     field<&ArchiveMetrics::epoch>},
};

template <ClusterState kState>
double is_in_state(const ControlSegment& control) {
  // Acquire pairs with the coordinator's release when it changed the state.
  return control.state.load(std::memory_order_acquire) == static_cast<uint32_t>(kState) ? 1 : 0;
}

template <auto kEpoch>
double epoch(const ControlSegment& control) {
  return read_metric(control.epochs.*kEpoch);
}

constexpr Metric<ControlSegment> kClusterMetrics[] = {
    {"atoll_cluster_running", "1 while the cluster accepts transactions.",
     is_in_state<ClusterState::running>},
    {"atoll_cluster_recovering",
     "1 while the cluster recovers: transactions may only read snapshots.",
     is_in_state<ClusterState::recovering>},
    {"atoll_recovery_read_ratio", "Part of the logs that this start has read.",
     field<&ControlSegment::recovered_percent>, 0.01},
    {"atoll_nodes", "Node processes of the cluster.", field<&ControlSegment::node_count>},
    {"atoll_storages", "Storages that procedures can use.", ready_storages},
    {"atoll_catalog_changes_total", "Storages created and dropped.",
     field<&ControlSegment::catalog_version>},
    {"atoll_coordinator_heartbeats_total", "Heartbeats of the coordinator.",
     field<&ControlSegment::heartbeat>},
    {"atoll_epoch_interval_seconds", "Time from one epoch to the next.",
     field<&ControlSegment::epoch_interval_us>, 1e-6},
    {"atoll_epoch_early_ends_total",
     "Epochs that ended early, because a client waited and no worker had anything to do.",
     epoch<&EpochBlock::early_ends>},
    {"atoll_epoch_current", "Epoch in which transactions commit now.", epoch<&EpochBlock::current>},
    {"atoll_epoch_durable",
     "Latest epoch whose commits are all durable. Advances while no transaction commits. With "
     "durability off: latest epoch that gets no further commits.",
     [](const ControlSegment& control) {
       return static_cast<double>(latest_settled_epoch(control.epochs));
     }},
    {"atoll_durability_lag_seconds",
     "Age of the oldest epoch whose commits are not durable yet, or 0 if all are durable.",
     [](const ControlSegment& control) {
       return static_cast<double>(durability_lag_us(control)) * 1e-6;
     }},
    {"atoll_epoch_oldest_begin", "Oldest epoch in which a running thread began.",
     epoch<&EpochBlock::oldest_begin>},
};

void add_acknowledgement(MetricFamilies& families, const AcknowledgementMetrics& metrics) {
  families
      .histogram("atoll_epoch_durable_seconds",
                 "Time from the end of an epoch until its commits can be acknowledged.")
      .sample(metrics.total_ns, latency_bounds_ns(), {});
  families.histogram("atoll_epoch_marker_seconds",
                     "Time from the sync of a marker until the coordinator sees it.");
  for (size_t node = 0; node < metrics.marker_ns.size(); ++node) {
    families.sample(metrics.marker_ns[node], latency_bounds_ns(), {{"node", std::to_string(node)}});
  }
  families
      .histogram("atoll_epoch_publish_seconds",
                 "Time to raise the durable epoch and to wake all that wait for it.")
      .sample(metrics.publish_ns, latency_bounds_ns(), {});
}

}  // namespace

uint64_t seconds_since(const std::atomic<uint64_t>& unix_s) {
  const uint64_t since = unix_s.load(std::memory_order_relaxed);  // for display
  if (since == 0) return 0;
  const auto now = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count());
  return now > since ? now - since : 0;
}

std::vector<prometheus::MetricFamily> ClusterMetrics::Collect() const {
  CHECK(control_.node_count <= kMaxNodes);
  CHECK(archive_ == nullptr || snapshots_ != nullptr);  // an archive needs a log
  MetricFamilies families({});
  families.add(kClusterMetrics, control_);
  families
      .counter("atoll_restarts_total", "Restarts of the cluster by its launcher after a failure.")
      .sample(restarts_);
  if (snapshots_ != nullptr) families.add(kSnapshotMetrics, *snapshots_);
  if (checkpoints_ != nullptr) families.add(kCheckpointMetrics, *checkpoints_);
  add_storages(families, control_, storages_of_newest(snapshots_, checkpoints_), nodes_);
  if (device_ != nullptr) add_device(families, *device_);
  if (archive_ != nullptr) families.add(kArchiveMetrics, *archive_);
  if (acknowledgement_ != nullptr) add_acknowledgement(families, *acknowledgement_);
  if (disks_ != nullptr) add_disks(families, *disks_);
  return families.take();
}

}  // namespace atolldb
