// The coordinator: epochs, catalog, status. The same object in a process of its own and beside the
// nodes in one process (thread mode).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
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
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/segment_space.h"
#include "shared/message/control_message.h"
#include "shared/metrics/device_watch.h"
#include "shared/metrics/snapshot_metrics.h"

namespace atolldb {

/// What the coordinator needs of the launcher.
struct LauncherCalls {
  /// Asks it to stop the cluster.
  std::function<void(bool now)> request_stop;
  /// Tells it that the cluster cannot go on.
  std::function<void(const Error&)> report_failure;
  /// Tells it that the recovery goes on, and what can be read meanwhile: "snapshot 3 of epoch 120";
  /// empty: nothing. May be empty itself.
  std::function<void(const std::string& readable)> report_recovering = {};
};

/// Life: prepare -> attach -> start -> open -> (drain) -> stop. The steps are called by one thread;
/// handle and beat by any.
class Coordinator {
 public:
  /// REQUIRES: `space` outlives the coordinator.
  Coordinator(Config config, uint64_t incarnation, SegmentSpace& space, NodeCall call_node,
              LauncherCalls launcher, Logger logger);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator();

  /// Makes the control segment. With a log: looks at the data directory before.
  Result<void> prepare();
  /// Maps what the nodes share. REQUIRES: all are prepared.
  Result<void> attach();
  /// Starts the clock and the DDL thread.
  Result<void> start();
  /// The nodes run: the cluster accepts transactions. `metrics`: endpoints by role. With a log,
  /// what earlier incarnations have committed is in a snapshot before (R32), and the savepoint
  /// lists the loggers (R28).
  Result<void> open(const Json& metrics);
  /// No new work from here on.
  void drain();
  void stop();

  /// Heartbeat word. False when the clock has not ticked for half of hang_limit: it hangs. Called
  /// by one thread.
  bool beat();
  /// How far a start is, for people: "recovering 12 400 reading the logs", with bytes done and
  /// bytes in all (0: unknown). Empty: nothing to tell. Called by the thread that calls beat.
  std::string progress() const;

  /// Serves a control request (coordinator/README.md lists them).
  void handle(const ControlRequest& request, ControlReply reply);

  ClusterState state() const;
  ControlSegment* control() { return control_; }
  /// Null without a log.
  const SnapshotMetrics* snapshot_metrics() const {
    return is_logged() ? &snapshot_metrics_ : nullptr;
  }
  const DeviceMetrics* device_metrics() const { return is_logged() ? &device_metrics_ : nullptr; }

 private:
  bool is_logged() const { return config_.durability.mode != DurabilityMode::off; }
  void set_state(ClusterState state);
  Result<std::unique_ptr<DurableState>> open_durable_state();
  /// The first log files of all loggers of all nodes, durably; then the loggers run.
  Result<void> begin_logs();
  /// Nothing can be made durable any more: nothing commits or is acknowledged from here on.
  void fail_durability(const Error& error);
  /// The storages that earlier incarnations have created and not dropped, empty until `recover`.
  Result<void> restore_storages();
  /// Makes a snapshot of what is in no other one yet, and lets all nodes read it.
  Result<void> recover();
  /// From here on the state is `recovering`, and transactions may read what there is. What fails
  /// here only makes readers wait.
  void begin_recovery();
  Result<void> take_recovery_snapshot();
  Result<void> take_recovery_snapshot(uint64_t epoch);
  /// The epoch before the first commit that is in no snapshot yet.
  uint64_t recovered_epoch() const;
  void rebuild_ballast();
  /// Into the control segment, for people. The heartbeat's thread.
  void note_recovery_progress();
  /// Says that the device hangs, and ends the cluster if it shall (R58). The heartbeat's thread.
  void watch_device();
  Json device_status() const;
  /// The savepoint notes what is durable once the closing markers are written (R51). The
  /// heartbeat's thread.
  void note_idleness();
  Json recovery_status() const;
  /// The error of a request that only a running cluster serves.
  Result<void> check_runs(const std::string& op) const;
  void warn_of_left_directories();
  Result<void> publish(const SnapshotMetadata& snapshot);
  std::vector<StorageToGlean> storages_to_glean() const;
  /// Runs the gleaner, makes what it made the newest snapshot, and counts that.
  Result<void> glean(GleanTask task);
  Result<void> glean_and_store(GleanTask task);
  // While the cluster runs; on the taker's thread.
  void start_snapshots();
  bool has_news() const;
  bool is_rewrite_due();
  Result<uint32_t> take_snapshot();
  Result<void> take_new_snapshot();
  /// A transaction waits for the first snapshot (R62).
  bool is_first_snapshot_awaited() const;
  std::vector<StorageToGlean> ask_ddl_for_storages();
  Result<void> publish_to_transactions();
  void make_newest(uint32_t id);
  /// Opens its files, too, on all nodes. Errors: its metadata cannot be read, or a node cannot open
  /// its files; then it is not offered.
  Result<void> offer_pinned(uint32_t id);
  /// Ids of the pinned snapshots that can be read; notes why others cannot.
  std::set<uint32_t> offer_pins();
  std::vector<SnapshotFilePlace> readable_places() const;
  Result<void> forget_unneeded();
  bool has_less_free_than(uint32_t percent) const;
  bool lacks_pages() const;
  /// Whether a logger has no room for its next file.
  bool lacks_log_files() const;
  bool stays_short(uint32_t percent) const;
  void install_newest();
  Result<void> open_kept_and(const SnapshotMetadata& snapshot);
  void release_kept(uint32_t oldest_left);
  void note_install(const Result<InstallReport>& report, std::chrono::milliseconds took);
  void request_snapshot(const ControlReply& reply);
  /// It is the newest one now.
  void note_newest(const SnapshotMetadata& snapshot);
  Json snapshot_status() const;
  Json install_status() const;
  Json unreadable_pins() const;
  void list_damage(const ControlRequest& request, const ControlReply& reply);
  Result<void> report_salvage();
  void tell_in_vain();
  /// snapshot.pin, snapshot.unpin, snapshot.remove: on the taker's thread.
  void request_change(const ControlRequest& request, const ControlReply& reply);
  Result<Json> change_snapshots(const ControlRequest& request);
  /// That volatile pages or transactions may lead to, and the newest one.
  std::set<uint32_t> ids_in_use() const;
  Result<void> log_ddl(DdlOperation operation, const StorageControl& storage);
  void run_ddl();
  void give_to_ddl(std::function<void()> task);
  void create_storage(const ControlRequest& request, const ControlReply& reply);
  void drop_storage(const ControlRequest& request, const ControlReply& reply);
  Result<void> check_no_drop(const std::string& name) const;
  std::unique_ptr<StorageDropper> make_dropper();
  Result<void> on_ddl_thread(const std::function<Result<void>()>& task);
  /// False: it is not yet, or the cluster has failed.
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
  IoWatch io_watch_;  // of the files of durable_
  DeviceMetrics device_metrics_{};
  DeviceWatch device_watch_{io_watch_, device_metrics_, config_.durability.device_hang_limit};
  std::atomic<uint64_t> bytes_to_check_{0};  // of logs, by prepare
  std::atomic<uint64_t> bytes_checked_{0};   // what durable_ has read
  std::unique_ptr<DurableState> durable_;    // null: nothing is
  std::unique_ptr<GleanerRun> gleaner_;      // likewise
  std::unique_ptr<SnapshotTaker> taker_;     // likewise
  /// The latest that is installed. Changed, as `kept_`, by the taker's thread once it runs.
  std::optional<SnapshotMetadata> published_;
  KeptSnapshots kept_;            // the nodes have their files open
  bool has_freed_pages_ = false;  // the latest install; the taker's thread's
  /// Those that transactions may begin with (R18), and those withdrawn that were read at the last
  /// look: their files are open on all nodes. By id; the taker's thread's.
  std::map<uint32_t, SnapshotMetadata> offered_;
  uint32_t snapshots_until_rewrite_ = 0;  // the taker's thread's
  bool lacks_ballast_ = false;            // likewise, from its start on; it was said
  std::atomic<uint64_t> bytes_to_recover_{0};
  std::atomic<uint32_t> snapshot_{0};  // the newest; 0: none
  std::atomic<uint64_t> snapshot_epoch_{0};
  SnapshotMetrics snapshot_metrics_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<EpochClock> clock_;
  std::unique_ptr<DurableEpoch> durable_epoch_;  // with a log
  bool has_ended_ = false;
  std::unique_ptr<StatusReport> status_;
  std::atomic<const EpochClock*> watched_clock_{nullptr};  // while it ticks
  uint64_t durable_seen_ = 0;                              // by beat(): durable and idle
  uint64_t durable_noted_ = 0;                             // by beat(): in the savepoint
  uint64_t ticks_seen_ = 0;                                // by beat()
  std::chrono::steady_clock::time_point tick_seen_at_;     // by beat()

  mutable std::mutex mutex_;
  std::condition_variable ddl_wake_;
  std::deque<std::function<void()>> ddl_tasks_;      // guarded by mutex_
  bool ddl_ends_ = false;                            // guarded by mutex_
  Json install_status_ = Json::object();             // guarded by mutex_: of the latest one
  std::map<uint32_t, std::string> unreadable_pins_;  // guarded by mutex_: why, as of the last look
  Json readable_ = Json();                           // guarded by mutex_: while it recovers
  std::thread ddl_thread_;
  std::unique_ptr<StorageDropper> dropper_;
};

}  // namespace atolldb
