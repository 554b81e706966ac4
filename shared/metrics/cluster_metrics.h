// Prometheus metrics of the coordinator: state, epochs, storages, snapshots or checkpoints, and
// disks of the cluster.
#pragma once

#include <prometheus/collectable.h>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/memory/control_layout.h"
#include "shared/memory/histogram.h"
#include "shared/memory/worker_metrics.h"
#include "shared/metrics/disk_watch.h"
#include "shared/metrics/storage_metrics.h"

namespace atolldb {

/// Snapshot metrics of the coordinator, local to its process. Writer: the thread that takes
/// snapshots.
struct SnapshotMetrics {
  Counter taken;   // snapshots taken by this incarnation, including its start-up
  Counter failed;  // failed attempts
  std::atomic<bool> is_taking{false};
  std::atomic<uint64_t> duration_us{0};  // duration of the latest snapshot taken
  // The next words describe the newest snapshot. They are 0 if there is no snapshot.
  std::atomic<uint64_t> id{0};
  std::atomic<uint64_t> epoch{0};
  std::atomic<uint64_t> taken_at_s{0};  // seconds since 1970; 0: taken by an earlier incarnation
  std::atomic<uint64_t> pages_written{
      0};  // pages written for this snapshot; earlier snapshots wrote its other pages
  std::atomic<uint64_t> files{0};                 // number of files that contain its pages
  std::atomic<uint64_t> pages_stored{0};          // pages in these files
  std::atomic<uint64_t> pages_live{0};            // live pages: those that the snapshot uses (R67)
  std::atomic<uint64_t> space_percent{0};         // pages_stored in percent of pages_live
  std::atomic<uint64_t> target_space_percent{0};  // value of gleaner.space_percent
  std::atomic<bool> lacks_room{false};            // a rewrite is due, but has no room (R74)
  StorageSpaces storages;                         // storages of the newest snapshot
  Counter pages_rewritten;  // live pages that rewrites copied to make old files deletable
};

/// Checkpoint metrics of the coordinator, local to its process. Writer: the thread that takes
/// checkpoints, or the one that opens the cluster.
struct CheckpointMetrics {
  Counter taken;   // checkpoints taken by this incarnation
  Counter failed;  // failed attempts
  std::atomic<bool> is_taking{false};
  std::atomic<uint64_t> duration_us{0};  // duration of the latest checkpoint taken
  // The next words describe the newest checkpoint. They are 0 if there is none.
  std::atomic<uint64_t> id{0};
  std::atomic<uint64_t> replay_epoch{0};
  std::atomic<uint64_t> end_epoch{0};
  std::atomic<uint64_t> taken_at_s{0};  // seconds since 1970; 0: taken by an earlier incarnation
  std::atomic<uint64_t> bytes{0};       // size of its files
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> files{0};
  StorageSpaces storages{false};  // storages whose records the newest checkpoint counts
  // The next words describe the recovery of this incarnation. They are 0 if there was none.
  std::atomic<uint64_t> replayed_bytes{0};    // of checkpoint files and log files, over all nodes
  std::atomic<uint64_t> replayed_records{0};  // records that were stored, over all nodes
  std::atomic<uint64_t> replay_us{0};
};

/// Returns the storages of the newest snapshot or checkpoint, or null if both arguments are null.
inline const StorageSpaces* storages_of_newest(const SnapshotMetrics* snapshots,
                                               const CheckpointMetrics* checkpoints) {
  if (snapshots != nullptr) return &snapshots->storages;
  return checkpoints != nullptr ? &checkpoints->storages : nullptr;
}

/// Metrics of the archive, local to the coordinator's process. Writer: the thread that archives.
struct ArchiveMetrics {
  Counter files;     // files stored by this incarnation
  Counter bytes;     // bytes of these files
  Counter failures;  // failed attempts
  std::atomic<uint64_t> waiting_files{0};
  std::atomic<uint64_t> waiting_bytes{0};
  std::atomic<uint64_t> epoch{0};            // the archive has every commit up to this epoch
  std::atomic<uint64_t> waiting_since_s{0};  // seconds since 1970; 0: nothing waits
  std::atomic<uint64_t> failing_since_s{0};  // seconds since 1970; 0: the last attempt succeeded
};

/// Times from the end of an epoch to its durability (epoch_stages.h), local to the coordinator's
/// process. Writer: the thread that raises the durable epoch. The loggers measure the other stages.
struct AcknowledgementMetrics {
  explicit AcknowledgementMetrics(size_t nodes) : marker_ns(nodes) {}

  Histogram total_ns;                // from the end of an epoch with commits until it is durable
  Histogram publish_ns;              // time of the stage publish
  std::vector<Histogram> marker_ns;  // time of the stage marker for each marker, by node
};

/// Returns the seconds since a time in seconds since 1970, or 0 for the time 0.
uint64_t seconds_since(const std::atomic<uint64_t>& unix_s);

/// Thread: any of the HTTP server. Reads memory only.
class ClusterMetrics : public prometheus::Collectable {
 public:
  /// `device`, `acknowledgement`, `disks`: null without a log. `snapshots`, `checkpoints`: null
  /// without a log, or if the cluster takes none. `archive`: null without an archive.
  /// `restarts`: restarts of the cluster by its launcher before this process. `nodes`: segments of
  /// all nodes. REQUIRES: the segments stay mapped, and all other arguments live, as long as this
  /// object.
  explicit ClusterMetrics(const ControlSegment& control, const SnapshotMetrics* snapshots = nullptr,
                          uint64_t restarts = 0, const DeviceMetrics* device = nullptr,
                          const ArchiveMetrics* archive = nullptr,
                          const AcknowledgementMetrics* acknowledgement = nullptr,
                          const DiskWatch* disks = nullptr,
                          const CheckpointMetrics* checkpoints = nullptr,
                          std::vector<const MetricsSegment*> nodes = {})
      : control_(control),
        snapshots_(snapshots),
        restarts_(restarts),
        device_(device),
        archive_(archive),
        acknowledgement_(acknowledgement),
        disks_(disks),
        checkpoints_(checkpoints),
        nodes_(std::move(nodes)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const ControlSegment& control_;
  const SnapshotMetrics* const snapshots_;
  const uint64_t restarts_;
  const DeviceMetrics* const device_;
  const ArchiveMetrics* const archive_;
  const AcknowledgementMetrics* const acknowledgement_;
  const DiskWatch* const disks_;
  const CheckpointMetrics* const checkpoints_;
  const std::vector<const MetricsSegment*> nodes_;
};

}  // namespace atolldb
