// The snapshots of a cluster: takes them, recovers from them, publishes, installs, pins and deletes
// them (R32, R36, R37, R38, R54, R61, R62, R84). `make_snapshot` and `install_and_publish` hold the
// sequence of a snapshot.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/catalog/catalog_manager.h"
#include "coordinator/durability/durable_state.h"
#include "coordinator/durability/logger_watch.h"
#include "coordinator/durability/scheme_manager.h"
#include "coordinator/epoch/epoch_clock.h"
#include "coordinator/node_calls.h"
#include "coordinator/snapshots/kept_snapshots.h"
#include "coordinator/snapshots/page_regulator.h"
#include "coordinator/snapshots/recovery_progress.h"
#include "coordinator/snapshots/rewrites.h"
#include "coordinator/snapshots/snapshot_job.h"
#include "coordinator/snapshots/snapshot_pace.h"
#include "coordinator/snapshots/snapshot_taker.h"
#include "coordinator/task_thread.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"
#include "shared/message/control_message.h"
#include "shared/metrics/cluster_metrics.h"
#include "shared/process/idle_cpus.h"

namespace atolldb {

/// Two threads work on snapshots, one after the other. Until `start` it is the thread that opens
/// the cluster, afterwards the taker's thread. Functions without a `Thread:` line are called only
/// by the thread that works on snapshots at the time.
class SnapshotManager : public SchemeManager {
 public:
  SnapshotManager(const SchemeContext& context, Logger logger);
  ~SnapshotManager() override { end(); }

  /// Makes a snapshot of the commits that no snapshot holds yet, and lets all nodes read it.
  Result<void> recover(const OnRecovering& on_recovering) override;
  void start() override;
  void end_page_supply() override;
  void stop() override { end(); }

  void handle(const ControlRequest& request, const ControlReply& reply) override;
  /// Adds the member "snapshots".
  void add_status(Json& status) const override;
  Json recovery_status() const override;
  std::string recovery_progress() const override;
  void record_recovery_progress() override;
  const SnapshotMetrics* snapshot_metrics() const override { return &snapshot_metrics_; }

 private:
  void end();
  bool is_own_thread() const { return std::this_thread::get_id() == thread_; }

  /// A snapshot job, from its task to its savepoint.
  struct Job {
    SnapshotTask task;
    SnapshotPlan plan;
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    std::vector<uint64_t> written;  // result of bytes_by_node() when the job began
    uint64_t paused_before = 0;     // result of paused_us() when the job began
    double spare_at_begin = 0;      // result of spare_pages() when the job began
    // Only for a job that overlaps an install:
    std::thread starter;   // runs start_mappers
    Result<void> started;  // result of start_mappers; REQUIRES: `starter` was joined

    uint64_t log_bytes() const { return std::reduce(task.log_bytes.begin(), task.log_bytes.end()); }
  };

  // The steps of a snapshot, in snapshot_manager.cpp.
  Result<void> make_snapshot(Job& job);
  Result<void> plan_job(Job& job);
  /// Thread: any.
  Result<void> start_mappers(const Job& job);
  void install_and_publish(const Job& job, const SnapshotMetadata& snapshot);
  Result<void> take_id(SnapshotTask& task);
  Result<void> store_savepoint(const SnapshotTask& task, const SnapshotMetadata& snapshot);
  /// Records `snapshot` as the newest one, for later decisions, the metrics and the status.
  void record_newest(const SnapshotMetadata& snapshot);

  // Snapshots of the running cluster, in snapshot_manager.cpp.
  std::unique_ptr<SnapshotTaker> make_taker();
  Result<uint32_t> take_snapshot(bool even_if_idle);
  Result<void> close_current_epoch();
  Result<uint32_t> take_next();
  Result<void> take_new_snapshot();
  std::unique_ptr<Job> new_job();
  void record_job(const Job& job, bool is_made);
  bool must_begin_next();
  void begin_next(uint32_t installed);
  void give_up_next();
  void record_capture(bool captures, bool is_made);
  SnapshotTask next_task();
  bool has_new_commits() const;
  /// Returns whether a transaction waits for the first snapshot (R62).
  bool is_first_snapshot_awaited() const;

  // Pacing of the running cluster's snapshots, in manager_pace.cpp.
  /// Returns whether the next job may pause.
  bool is_paced() const;
  /// Returns the bytes of log since the newest snapshot, by node. The log of earlier incarnations
  /// is already in a snapshot, because each start-up ends with one. `written`: current result of
  /// LoggerWatch::bytes_by_node.
  std::vector<uint64_t> new_log_bytes(const std::vector<uint64_t>& written);
  /// Lets the job of this task pause while it is ahead of its goal.
  void set_pace(SnapshotTask& task);
  /// Returns the part of the current job that should be done now. Thread: any.
  double paced_goal();
  double idle_cpus();
  /// Returns the sum of the pauses of all jobs on all nodes so far.
  uint64_t paused_us() const;
  PaceReadings pace_readings();
  uint64_t room_bytes(std::chrono::steady_clock::time_point now);
  /// Returns the share of free pages above gleaner.pool_low_water, in the pool with the fewest free
  /// pages.
  double spare_pages() const;

  // Recovery, in manager_recovery.cpp.
  /// Lets transactions read the existing snapshots. Returns the text for OnRecovering. After a
  /// failure, readers must wait for the end of the recovery.
  std::string begin_recovery();
  /// Thread, for this function and the next one: any.
  RecoveryCounts recovery_counts() const;
  std::chrono::nanoseconds recovery_time() const;
  Result<void> take_recovery_snapshots();
  Result<void> take_recovery_snapshot(uint64_t epoch);
  /// Returns the last epoch that needs no recovery: the epoch of the newest snapshot, or the epoch
  /// before the first commit that no snapshot holds.
  uint64_t recovered_epoch() const;
  Result<void> set_storage_roots(const SnapshotMetadata& snapshot);
  Json salvaged() const;
  Result<void> report_salvage();

  // Publication and deletion, in manager_publish.cpp.
  Result<void> publish_to_transactions();
  void make_newest(uint32_t id);
  void choose_cold_writes(const SnapshotMetadata& snapshot);
  void revise_cold_writes();
  uint64_t pool_pages() const;
  /// Publishes the snapshot on all nodes (R18). REQUIRES: its files are open there.
  Result<void> publish_on_nodes(const SnapshotMetadata& snapshot);
  /// Withdraws all snapshots that are not in `keep`. On return no transaction can begin with them.
  /// Running transactions that read them still name them in their slots (snapshots_in_use).
  Result<void> withdraw_on_nodes(const std::set<uint32_t>& keep);
  /// Reads the metadata of a pinned snapshot and opens its files on all nodes. After an error
  /// transactions cannot begin with this snapshot.
  Result<void> offer_pinned(uint32_t id);
  /// Returns the ids of the pinned snapshots that can be read. Records why each of the other pinned
  /// snapshots cannot be read.
  std::set<uint32_t> offer_pins();
  std::vector<SnapshotFilePlace> readable_places() const;
  /// Opens the files of readable_places() and `more` on all nodes, and closes all other files
  /// there. Also sends the files of the kept snapshots, because the nodes scrub them, too. A scrub
  /// forgets the damage in snapshot files that were not sent.
  Result<void> open_readable(const std::vector<SnapshotFilePlace>& more = {});
  Result<void> delete_obsolete_files();
  /// Publishes the newest snapshot, then deletes obsolete files. Logs an error: everything stays
  /// readable, and the next snapshot or start tries again.
  Result<void> publish_and_delete();
  /// Returns the ids of the newest snapshot and of those that volatile pages or transactions may
  /// refer to.
  std::set<uint32_t> ids_in_use() const;

  // Installation, in manager_install.cpp.
  bool open_for_install(const SnapshotMetadata& snapshot);
  void install(const Job& job, const SnapshotMetadata& snapshot);
  void release_kept(uint32_t oldest_left, uint32_t installed);
  bool frees_enough(const InstallReport& report) const;
  void record_install(const SnapshotMetadata& snapshot, const Result<InstallReport>& report,
                      std::chrono::milliseconds took);
  bool pool_is_below(uint32_t free_percent) const;
  bool pool_is_low() const { return pool_is_below(config_.gleaner.pool_low_water); }
  /// Returns whether the pool is low, or will be before a later job could free pages.
  bool pages_are_short() const { return pool_is_low() || page_regulator_.is_short(); }
  bool pool_is_starved() const;
  bool pool_still_low(uint32_t free_percent) const;
  void record_unproductive_snapshot();

  // Requests and status, in manager_requests.cpp.
  void request_snapshot(const ControlReply& reply);
  void list_damage(const ControlReply& reply);
  Result<Json> change(const ControlRequest& request);
  Result<Json> pin(const ControlRequest& request);
  Result<Json> unpin(const ControlRequest& request);
  Result<Json> remove(const ControlRequest& request);
  Json install_status() const;
  Json unreadable_pins() const;
  void record_backup_pins();
  Json backup_pins() const;

  const Config& config_;
  ControlSegment& control_;
  const std::vector<NodeShared*>& nodes_;
  const std::vector<const MetricsSegment*>& metrics_;
  const LoggerWatch loggers_;
  EpochClock& clock_;
  CatalogManager& catalog_;
  DurableState* const durable_;
  const NodeCall& call_node_;
  Logger logger_;
  const std::unique_ptr<SnapshotJob> job_;  // null: nothing is durable

  // The next members are used only by the thread that works on snapshots.
  std::thread::id thread_;  // id of that thread
  KeptSnapshots kept_;      // snapshots whose files the nodes have open
  /// The snapshots that transactions may begin with (R18), by id, and withdrawn snapshots that a
  /// transaction still read at the last check. Their files are open on all nodes.
  std::map<uint32_t, SnapshotMetadata> offered_;
  bool has_freed_pages_ = false;        // the latest install freed a good part of a pool
  bool has_failed_ = false;             // the latest attempt has failed
  uint32_t jobs_without_captures_ = 0;  // number of the next jobs that capture no pages
  uint32_t next_without_captures_ = 1;  // that number after the next failed job that captures pages
  /// Log bytes by node that the newest snapshot covers, counted since the cluster began.
  std::vector<uint64_t> snapshot_log_bytes_;
  /// The job that has begun before the install of the newest snapshot has ended (R84), or null.
  std::unique_ptr<Job> next_;

  // The next members are used by any thread.
  std::atomic<uint64_t> bytes_to_recover_{0};
  /// Begin of the recovery, in nanoseconds of steady_clock; 0: no recovery has begun.
  std::atomic<int64_t> recovery_began_ns_{0};
  std::atomic<uint32_t> newest_{0};  // id of the newest snapshot; 0: none
  std::atomic<uint64_t> newest_epoch_{0};
  std::atomic<uint64_t> overlapped_{0};  // jobs that began before the install of their base (R84)
  SnapshotMetrics snapshot_metrics_;
  Rewrites rewrites_;  // any thread may call `status`
  mutable std::mutex pace_mutex_;
  std::optional<SnapshotPace> pace_;  // of the current or latest job; guarded by pace_mutex_
  IdleCpus idle_cpus_;                // guarded by pace_mutex_
  uint64_t room_bytes_ = 0;           // room at the last reading; guarded by pace_mutex_
  std::chrono::steady_clock::time_point room_read_next_{};  // guarded by pace_mutex_
  mutable std::mutex mutex_;
  // The next five members are guarded by mutex_.
  std::chrono::nanoseconds recovery_reported_{0};    // last report, as time since the begin
  Json install_status_ = Json::object();             // status of the latest install
  std::map<uint32_t, std::string> unreadable_pins_;  // by id: reason at the last check
  Json backup_pins_ = Json::array();                 // pins of backups
  Json readable_ = Json();                           // what can be read during a recovery

  std::mutex cold_mutex_;
  // Storages whose cold writes bring pages into memory although not all data fit in the pools, and
  // their copied pages at the last check. Guarded by cold_mutex_.
  std::map<uint32_t, uint64_t> copied_pages_;
  // The epochs in which revise_cold_writes changed storages. The next snapshot may have the changes
  // of a load, which are dense, and would undo the choice. Guarded by cold_mutex_.
  std::map<uint32_t, uint64_t> revised_in_;
  uint64_t log_bytes_ = 0;  // of all storages, at that check; guarded by cold_mutex_
  std::chrono::steady_clock::time_point copied_pages_read_{};  // guarded by cold_mutex_

  /// Waits for the nodes' answers to snapshot.damage. A slow node then delays no other request.
  TaskThread damage_thread_{"damage"};
  PageRegulator page_regulator_{
      nodes_, metrics_, [this] {
        revise_cold_writes();
        return cold_pages(metrics_, snapshot_metrics_.pages_live.load(std::memory_order_relaxed));
      }};
  std::unique_ptr<SnapshotTaker> taker_;  // null before start
};

}  // namespace atolldb
