// The coordinator of a cluster. It owns the epoch clock, the catalog, recovery, snapshots and the
// status report. It runs in a process of its own, or beside the nodes in one process (thread mode).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "coordinator/catalog/catalog.h"
#include "coordinator/catalog/storage_dropper.h"
#include "coordinator/durability/durable_state.h"
#include "coordinator/epoch/durable_epoch.h"
#include "coordinator/epoch/epoch_clock.h"
#include "coordinator/gleaner/gleaner_run.h"
#include "coordinator/gleaner/kept_snapshots.h"
#include "coordinator/gleaner/snapshot_taker.h"
#include "coordinator/status.h"
#include "coordinator/task_thread.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/segment_space.h"
#include "shared/message/control_message.h"
#include "shared/metrics/device_watch.h"
#include "shared/metrics/snapshot_metrics.h"

namespace atolldb {

/// The calls that the coordinator makes to the launcher.
struct LauncherCalls {
  /// Asks the launcher to stop the cluster.
  std::function<void(bool now)> request_stop;
  /// Tells the launcher that the cluster cannot continue.
  std::function<void(const Error&)> report_failure;
  /// Tells the launcher that the recovery has begun. `readable` names what transactions can read
  /// meanwhile, for example "snapshot 3 of epoch 120"; it is empty if they can read nothing. The
  /// function itself may be empty.
  std::function<void(const std::string& readable)> report_recovering = {};
};

/// Order of the calls: prepare -> attach -> start -> open -> (drain) -> stop. Thread: one thread
/// makes these calls, and any thread may call `handle`. `beat` and `progress` share one thread.
class Coordinator {
 public:
  /// REQUIRES: `space` outlives the coordinator.
  Coordinator(Config config, uint64_t incarnation, SegmentSpace& space, NodeCall call_node,
              LauncherCalls launcher, Logger logger);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator();

  /// Makes the control segment. With a log, it first checks the data directory.
  Result<void> prepare();
  /// Maps the segments that the nodes share. REQUIRES: all nodes are prepared.
  Result<void> attach();
  /// Starts the clock and the threads that serve requests.
  Result<void> start();
  /// Lets the cluster accept transactions. `metrics`: endpoints by role. With a log, two steps come
  /// first: a snapshot takes up the commits of earlier incarnations (R32), and the savepoint lists
  /// the loggers (R28). REQUIRES: the nodes run.
  Result<void> open(const Json& metrics);
  /// Ends the admission of new work.
  void drain();
  void stop();

  /// Advances the heartbeat word. Returns false if the clock has not ticked for half of
  /// `cluster.hang_limit`, which means that it hangs. Thread: always the same one.
  bool beat();
  /// Returns the progress of a start, for display: "recovering 12 400 reading the logs". The
  /// numbers are the bytes done and the bytes in total (0: unknown). Returns "" if there is nothing
  /// to tell. Thread: the one that calls `beat`.
  std::string progress() const;

  /// Serves a control request; coordinator/README.md lists them. Thread: any.
  void handle(const ControlRequest& request, ControlReply reply);

  ClusterState state() const;
  ControlSegment* control() { return control_; }
  /// Returns null without a log.
  const SnapshotMetrics* snapshot_metrics() const {
    return is_logged() ? &snapshot_metrics_ : nullptr;
  }
  const DeviceMetrics* device_metrics() const { return is_logged() ? &device_metrics_ : nullptr; }

 private:
  bool is_logged() const { return config_.durability.mode != DurabilityMode::off; }
  void set_state(ClusterState state);
  Result<std::unique_ptr<DurableState>> open_durable_state();
  /// Lets every logger of every node make its first log file durable and start.
  Result<void> begin_logs();
  /// Ends all commits and acknowledgements, because nothing can become durable any more.
  void fail_durability(const Error& error);
  /// Restores the storages that earlier incarnations created and did not drop. They are empty until
  /// `recover`.
  Result<void> restore_storages();
  /// Makes a snapshot of the commits that no snapshot holds yet, and lets all nodes read it.
  Result<void> recover();
  /// Sets the state to `recovering`, in which transactions may read the existing snapshots. A
  /// failure here only makes readers wait.
  void begin_recovery();
  Result<void> take_recovery_snapshot();
  Result<void> take_recovery_snapshot(uint64_t epoch);
  /// Returns the last epoch that needs no recovery: the newest snapshot's, or the one before the
  /// first commit that no snapshot holds.
  uint64_t recovered_epoch() const;
  void rebuild_ballast();
  /// Stores the progress in the control segment, for display. Thread: the heartbeat's.
  void note_recovery_progress();
  /// Reports a device that hangs, and ends the cluster if the config says so (R58). Thread: the
  /// heartbeat's.
  void watch_device();
  Json device_status() const;
  /// Lets the savepoint record the durable epoch after the closing markers are written (R51).
  /// Thread: the heartbeat's.
  void note_idleness();
  Json recovery_status() const;
  /// Returns an error if the cluster does not run. `op` names the request.
  Result<void> check_runs(const std::string& op) const;
  void warn_of_left_directories();
  Result<void> publish(const SnapshotMetadata& snapshot);
  std::vector<StorageToGlean> storages_to_glean() const;
  /// Runs the gleaner, stores the result as the newest snapshot, and counts it in the metrics.
  Result<void> glean(GleanTask task);
  Result<void> glean_and_store(GleanTask task);
  // Snapshots of the running cluster. Thread: the snapshot taker's, except for requests and status;
  // during a start the thread that calls `open`.
  void start_snapshots();
  bool has_news() const;
  bool is_rewrite_due();
  Result<uint32_t> take_snapshot();
  Result<void> take_new_snapshot();
  /// Returns whether a transaction waits for the first snapshot (R62).
  bool is_first_snapshot_awaited() const;
  std::vector<StorageToGlean> ask_ddl_for_storages();
  Result<void> publish_to_transactions();
  void make_newest(uint32_t id);
  /// Reads the metadata of a pinned snapshot and opens its files on all nodes. Returns an error if
  /// either fails; transactions then cannot begin with this snapshot.
  Result<void> offer_pinned(uint32_t id);
  /// Returns the ids of the pinned snapshots that can be read. Records the reason for each of the
  /// others.
  std::set<uint32_t> offer_pins();
  std::vector<SnapshotFilePlace> readable_places() const;
  /// Opens the readable files and those of `more` on all nodes, and closes all other files there.
  /// The nodes also learn the files of the kept snapshots. A scrub forgets the damage of files that
  /// it was not told of.
  Result<void> open_readable(const std::vector<SnapshotFilePlace>& more = {});
  Result<void> forget_unneeded();
  bool has_less_free_than(uint32_t percent) const;
  bool lacks_pages() const;
  /// Returns whether a logger has no room for its next file.
  bool lacks_log_files() const;
  bool stays_short(uint32_t percent) const;
  void install_newest();
  void release_kept(uint32_t oldest_left);
  void note_install(const Result<InstallReport>& report, std::chrono::milliseconds took);
  void request_snapshot(const ControlReply& reply);
  /// Records `snapshot` as the newest one, in the metrics and for the status.
  void note_newest(const SnapshotMetadata& snapshot);
  Json snapshot_status() const;
  Json install_status() const;
  Json unreadable_pins() const;
  void list_damage(const ControlRequest& request, const ControlReply& reply);
  Json salvaged() const;
  Result<void> report_salvage();
  void tell_in_vain();
  /// Serves snapshot.pin, snapshot.unpin and snapshot.remove on the taker's thread.
  void request_change(const ControlRequest& request, const ControlReply& reply);
  Result<Json> change_snapshots(const ControlRequest& request);
  /// Returns the newest snapshot and those that volatile pages or transactions may refer to.
  std::set<uint32_t> ids_in_use() const;
  Result<void> log_ddl(DdlOperation operation, const StorageControl& storage);
  void create_storage(const ControlRequest& request, const ControlReply& reply);
  void drop_storage(const ControlRequest& request, const ControlReply& reply);
  Result<void> check_no_drop(const std::string& name) const;
  std::unique_ptr<StorageDropper> make_dropper();
  Result<void> on_ddl_thread(const std::function<Result<void>()>& task);
  /// Returns false if `epoch` is not durable within `patience`, or if the cluster has failed.
  bool wait_until_durable(uint64_t epoch, std::chrono::milliseconds patience) const;
  void describe_storage(const ControlRequest& request, const ControlReply& reply) const;
  Json storages() const;

  const Config config_;
  const uint64_t incarnation_;
  SegmentSpace& space_;
  NodeCall call_node_;
  LauncherCalls launcher_;
  Logger logger_;
  ControlSegment* control_ = nullptr;
  std::vector<NodeShared*> nodes_;
  std::vector<const MetricsSegment*> metrics_;
  IoWatch io_watch_;  // watches the files of durable_
  DeviceMetrics device_metrics_{};
  DeviceWatch device_watch_{io_watch_, device_metrics_, config_.durability.device_hang_limit};
  std::atomic<uint64_t> bytes_to_check_{0};  // size of the log files, set by prepare
  std::atomic<uint64_t> bytes_checked_{0};   // bytes that durable_ has read
  std::unique_ptr<DurableState> durable_;    // null: nothing is durable
  std::unique_ptr<GleanerRun> gleaner_;      // null: nothing is durable
  std::unique_ptr<SnapshotTaker> taker_;     // null: nothing is durable
  /// The latest installed snapshot. Only the taker's thread changes it and `kept_`, once it runs.
  std::optional<SnapshotMetadata> published_;
  KeptSnapshots kept_;            // the nodes have the files of these open
  bool has_freed_pages_ = false;  // the latest install freed pages; thread: the taker's
  /// The snapshots that transactions may begin with (R18), by id. It also holds withdrawn ones that
  /// a transaction still read at the last check. Their files are open on all nodes. Thread: the
  /// taker's.
  std::map<uint32_t, SnapshotMetadata> offered_;
  uint32_t snapshots_until_rewrite_ = 0;  // thread: the taker's
  bool lacks_ballast_ = false;            // a warning was logged; thread: the taker's, once it runs
  std::atomic<uint64_t> bytes_to_recover_{0};
  std::atomic<uint32_t> snapshot_{0};  // id of the newest; 0: none
  std::atomic<uint64_t> snapshot_epoch_{0};
  SnapshotMetrics snapshot_metrics_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<EpochClock> clock_;
  std::unique_ptr<DurableEpoch> durable_epoch_;  // null without a log
  bool has_ended_ = false;
  std::unique_ptr<StatusReport> status_;
  std::atomic<const EpochClock*> watched_clock_{nullptr};  // null unless the clock ticks
  uint64_t durable_seen_ = 0;   // by beat(): the durable epoch when last found idle
  uint64_t durable_noted_ = 0;  // by beat(): the durable epoch in the savepoint
  uint64_t ticks_seen_ = 0;     // by beat()
  std::chrono::steady_clock::time_point tick_seen_at_;  // by beat()

  mutable std::mutex mutex_;
  Json install_status_ = Json::object();             // guarded by mutex_: of the latest install
  std::map<uint32_t, std::string> unreadable_pins_;  // guarded by mutex_: reasons of the last check
  Json readable_ = Json();                           // guarded by mutex_: set during recovery
  TaskThread ddl_thread_{"ddl"};
  /// Waits for the nodes' answers to snapshot.damage. A slow node then delays no other request.
  TaskThread damage_thread_{"damage"};
  std::unique_ptr<StorageDropper> dropper_;
};

}  // namespace atolldb
