// The coordinator of a cluster: its life cycle and its control requests. It owns the epoch clock,
// the catalog (`CatalogManager`), the snapshots or checkpoints (`SchemeManager`) and the status
// report. The coordinator runs in its own process, or beside the nodes in one process (thread
// mode).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/archive/log_archiver.h"
#include "coordinator/catalog/catalog_manager.h"
#include "coordinator/durability/durable_state.h"
#include "coordinator/durability/scheme_manager.h"
#include "coordinator/epoch/durable_epoch.h"
#include "coordinator/epoch/epoch_clock.h"
#include "coordinator/epoch/epoch_time_recorder.h"
#include "coordinator/node_calls.h"
#include "coordinator/status.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/segment_space.h"
#include "shared/message/control_message.h"
#include "shared/metrics/cluster_metrics.h"
#include "shared/metrics/device_watch.h"

namespace atolldb {

/// The calls that the coordinator makes to the launcher.
struct LauncherCalls {
  /// Asks the launcher to stop the cluster.
  std::function<void(bool now)> request_stop;
  /// Tells the launcher that the cluster cannot continue.
  std::function<void(const Error&)> report_failure;
  /// Tells the launcher that the recovery has begun. `readable` names what transactions can read
  /// meanwhile; it is empty if they can read nothing. This member may be empty.
  std::function<void(const std::string& readable)> report_recovering = {};
  /// Tells the launcher new values of keys, for its own work and for restarts. `values`: as
  /// reload_values takes them, in one line. This member may be empty.
  std::function<void(const std::string& values)> report_reload = {};
};

/// Order of the calls: prepare -> attach -> start -> open -> (drain) -> stop. Thread: one thread
/// makes these calls, and any thread may call `handle`. One thread calls `beat` and `progress`.
class Coordinator {
 public:
  /// REQUIRES: `space` outlives the coordinator.
  Coordinator(Config config, uint64_t incarnation, SegmentSpace& space, NodeCall call_node,
              LauncherCalls launcher, Logger logger);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator();

  /// Makes the control segment. If durability.mode is "durable", first checks the data directory.
  Result<void> prepare();
  /// Maps the segments that the nodes share. REQUIRES: all nodes are prepared.
  Result<void> attach();
  /// Starts the clock and the threads that serve requests.
  Result<void> start();
  /// Lets the cluster accept transactions. `metrics`: endpoints by role. If durability.mode is
  /// "durable", two steps come first. The scheme restores the commits of earlier incarnations
  /// (R32), and the savepoint lists the loggers (R28). REQUIRES: the nodes run.
  Result<void> open(const Json& metrics);
  /// Drains the cluster: from now on it admits no new work.
  void drain();
  void stop();

  /// Advances the heartbeat word. Returns false if the clock hangs: it has not ticked for half of
  /// `cluster.hang_limit` and for at least 4 epochs. Thread: always the same one.
  bool beat();
  /// Returns the progress of a start-up, for display: "recovering 12 400 reading the logs". The
  /// numbers are the bytes done and the bytes in total (0: unknown). Returns "" if there is no
  /// progress to report. Thread: the one that calls `beat`.
  std::string progress() const;

  /// Serves a control request; coordinator/README.md lists them. REQUIRES: `start` has returned.
  /// Thread: any.
  void handle(const ControlRequest& request, const ControlReply& reply);

  /// Returns the status with the members `healthy` and `problems`. REQUIRES: `start` has returned.
  /// Thread: any.
  Json status_for_page();
  /// Returns the counts for the history of the status page. REQUIRES: `attach` has returned.
  /// Thread: any.
  ClusterCounts counts() const { return status_->counts(); }
  /// Sets the URL of the status page, which the status shows. REQUIRES: `attach` has returned.
  void set_status_page(std::string url) { status_->set_status_page(std::move(url)); }

  ClusterState state() const;
  ControlSegment* control() { return control_; }
  /// Returns null without a log, or with another scheme. REQUIRES: `start` has returned.
  const SnapshotMetrics* snapshot_metrics() const {
    return is_logged() ? scheme_->snapshot_metrics() : nullptr;
  }
  const CheckpointMetrics* checkpoint_metrics() const {
    return is_logged() ? scheme_->checkpoint_metrics() : nullptr;
  }
  /// Returns null without an archive. REQUIRES: `start` has returned.
  const ArchiveMetrics* archive_metrics() const {
    return archiver_ == nullptr ? nullptr : &archiver_->metrics();
  }
  /// Returns null without a log. REQUIRES: `start` has returned.
  const AcknowledgementMetrics* acknowledgement_metrics() const {
    return durable_epoch_ == nullptr ? nullptr : &durable_epoch_->times().metrics();
  }
  /// Returns the segments of all nodes. REQUIRES: `attach` has returned.
  const std::vector<const MetricsSegment*>& node_metrics() const { return metrics_; }
  const DeviceMetrics* device_metrics() const { return is_logged() ? &device_metrics_ : nullptr; }

 private:
  bool is_logged() const { return config_.durability.mode != DurabilityMode::off; }
  void set_state(ClusterState state);
  Result<std::unique_ptr<DurableState>> open_durable_state();
  void warn_of_left_directories();
  /// Starts the archive, if the config has one.
  void start_archiver();
  /// Lets every logger of every node make its first log file durable and start.
  Result<void> begin_logs();
  /// Returns the error. If a disk is full, and log files wait for the archive, the text says so.
  Error with_reason(Error error) const;
  /// Ends all commits and acknowledgements, because nothing can become durable any more.
  void fail_durability(const Error& cause);
  /// Reports a device that hangs, and ends the cluster if the config says so (R58). Thread: the
  /// heartbeat's.
  void watch_device();
  /// Lets the savepoint record the durable epoch after the closing markers are written (R51).
  /// Thread: the heartbeat's.
  void record_idleness();
  Json status(StatusReader reader, uint64_t slowest_since, bool has_buckets);
  /// Return storages of the catalog, with their counts in the snapshot caches.
  Json list_storages() const;
  /// Adds to each storage what the newest snapshot or checkpoint has of it.
  void add_spaces(Json& storages) const;
  Result<Json> describe_one_storage(const ControlRequest& request) const;
  Json device_status() const;
  Result<Json> reload_config(const ControlRequest& request);
  void stop_cluster(const ControlRequest& request, const ControlReply& reply);
  /// Returns an error if the cluster does not run. `op` names the request.
  Result<void> check_runs(const std::string& op) const;

  Config config_;  // only values of type Live change (reload_config)
  const uint64_t incarnation_;
  SegmentSpace& space_;
  NodeCall call_node_;
  LauncherCalls launcher_;
  std::mutex reload_mutex_;
  Logger logger_;
  ControlSegment* control_ = nullptr;           // set by prepare
  std::vector<NodeShared*> nodes_;              // set by attach
  std::vector<const MetricsSegment*> metrics_;  // set by attach
  IoWatch io_watch_;                            // watches the files of durable_
  DeviceMetrics device_metrics_{};
  DeviceWatch device_watch_{io_watch_, device_metrics_, config_.durability.device_hang_limit};
  std::atomic<uint64_t> bytes_to_check_{0};  // size of the log files, set by prepare
  std::atomic<uint64_t> bytes_checked_{0};   // bytes that durable_ has read
  std::unique_ptr<DurableState> durable_;    // null: nothing is durable
  std::unique_ptr<LogArchiver> archiver_;    // made by start; null: nothing is archived
  std::unique_ptr<EpochClock> clock_;
  std::unique_ptr<DurableEpoch> durable_epoch_;  // null without a log
  std::unique_ptr<EpochTimeRecorder> times_;     // made by start; null if nothing is durable
  std::unique_ptr<CatalogManager> catalog_;      // made by prepare
  std::unique_ptr<SchemeManager> scheme_;        // made by start
  std::unique_ptr<StatusReport> status_;         // made by attach
  bool has_ended_ = false;
  std::atomic<const EpochClock*> watched_clock_{nullptr};  // null before start and after stop

  // Used only by the thread that calls beat.
  uint64_t idle_epoch_seen_ = 0;  // durable epoch at the last heartbeat that found the cluster idle
  uint64_t idle_epoch_recorded_ = 0;  // the durable epoch in the savepoint
  uint64_t ticks_seen_ = 0;
  std::chrono::steady_clock::time_point tick_seen_at_;  // first set by start
};

}  // namespace atolldb
