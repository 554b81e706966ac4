// The parent of a cluster's processes. It starts them step by step, watches them and stops them. It
// maps no shared memory, so corrupt shared memory cannot crash it. Fail-stop: if one process ends
// or hangs, the launcher kills all and removes their files.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/launcher/child.h"
#include "ops/launcher/cluster_note.h"
#include "ops/launcher/data_lock.h"
#include "ops/launcher/restart_plan.h"
#include "ops/launcher/run_folder.h"
#include "ops/launcher/run_notes.h"
#include "ops/launcher/segment_set.h"
#include "ops/launcher/service_notifier.h"
#include "ops/launcher/start_progress.h"
#include "shared/base/error.h"
#include "shared/base/unique_fd.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"

namespace atolldb {

struct LaunchOptions {
  /// Folder of atoll-coordinator and atoll-node; empty: that of program_folder.h.
  std::string binary_dir;
  /// Path of the config file, as canonical_config_file returns it. Later commands with this file
  /// find the cluster in every environment. Empty: commands find the cluster by its run folder
  /// only.
  std::string config_file = {};
  /// Moves the content of the data directory aside before the start.
  bool discards_data = false;
  /// Starts without data that cannot be read (engine/recovery/salvage.h).
  bool salvages = false;
  /// Signals to obey (SIGINT, SIGTERM: the first stops in order, the second at once); -1: none.
  int signal_fd = -1;
  /// Connection to the command that waits for the start-up. If the other end is closed before the
  /// cluster runs, the launcher gives up the start-up. -1: none.
  int waiting_fd = -1;
  /// Called when a recovery begins. `readable`: what can be read until the recovery ends ("snapshot
  /// 3 of epoch 120"; empty: nothing). Called only in the first start-up. Thread: the launcher's.
  std::function<void(const std::string& readable)> on_recovering = {};
  /// Called at each step of a start-up and twice a second during it. Called only in the first
  /// start-up. Thread: the launcher's.
  std::function<void(const StartReport&)> on_progress = {};
  /// If true, the waiting command returns when snapshots can be read. The start-up then continues
  /// without it.
  bool until_readable = false;
  /// Reports start, readiness and stop to the service manager (service_notifier.h).
  bool notifies_service_manager = false;
  /// Limits of the restarts with cluster.restart = "recover".
  RestartLimits restarts = {};
};

/// One thread makes all calls except request_stop. This thread must live as long as the cluster,
/// because the children are killed when it ends.
class Launcher {
 public:
  Launcher(Config config, LaunchOptions options, Logger logger);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  /// Kills the processes that still run, and cleans up.
  ~Launcher();

  /// Returns when the cluster runs, or an error after everything has been cleaned up.
  Result<void> start();
  /// Returns when the cluster has stopped on request. Returns an error if the cluster failed: the
  /// message names the process and how it ended, and everything has been cleaned up. With
  /// cluster.restart = "recover" the function first restarts the cluster, as often as
  /// options.restarts and the cause allow. `started`: the result of start(); a failed start-up
  /// counts as a failure of the running cluster.
  Result<void> supervise(Result<void> started = {});
  /// Requests a stop. The second request, or `now`, kills the processes. Thread: any.
  void request_stop(bool now);

 private:
  enum class Phase { starting, running, draining, stopping_nodes, stopping_coordinator, stopped };

  /// Acquires the run folder and the data locks, creates the segments, and spawns the processes. A
  /// restart keeps the run folder unless it was deleted.
  Result<void> create();
  Result<void> acquire_folder();
  Result<void> leave_note();
  /// Logs a warning once when the run folder has been deleted.
  void watch_folder();
  /// The four functions below keep the progress note of a start-up. They write it at each step
  /// (`awaited_`) and at intervals.
  void begin_progress();
  void note_step();
  void report_progress();
  void end_progress();
  Result<void> discard();
  Result<void> salvage();
  Result<void> spawn_all();
  Result<void> run_until(Phase phase);
  /// Waits for events once and handles them.
  Result<void> turn();
  /// Returns false if a signal interrupted the wait.
  bool take_events();
  Result<void> stop_at_once();
  void receive(Child& child);
  void take_line(Child& child, const std::string& line);
  void reload(const std::string& values);
  Result<void> check_children();
  Result<void> advance();
  Result<void> advance_start();
  void take_requests();
  void begin_drain();
  bool all_reached(const char* step) const;
  bool nodes_ended() const;
  void send_all(const char* command);
  Error died(const Child& child) const;
  /// Returns the child whose error names the cause best, or null if no child reported an error.
  const Child* most_telling_failure() const;
  /// Kills all processes, cleans up, writes the failure note, and returns the error. If a restart
  /// follows, it keeps the run folder and sets restart_wait_.
  std::unexpected<Error> fail(Error error);
  void plan_restart(Error& error, Phase failed_in);
  /// Returns when the cluster runs again or has stopped on request. Returns the error of `fail` if
  /// the restart fails. REQUIRES: restart_wait_ is set.
  Result<void> restart();
  /// Returns false if a stop was requested during the wait.
  bool wait_for_restart(std::chrono::milliseconds wait);
  void note_restart_now(bool is_under_way);
  void kill_all();
  /// Releases the segments and the lock of the data.
  void release();
  /// Cleans up after a stop that the user wanted: also removes the Prometheus targets.
  void clean_up_after_stop();
  void clean_up();
  int poll_timeout_ms() const;
  std::chrono::milliseconds stop_patience() const;

  Config config_;
  LaunchOptions options_;
  Logger logger_;
  UniqueFd stop_fd_;  // eventfd: 1 = stop, kStopNow = at once
  ServiceNotifier notifier_;
  std::optional<ClusterNote> note_;  // only with a config file; kept over restarts, like folder_
  std::optional<RunFolder> folder_;
  std::optional<DataLock> data_lock_;  // no value: there is no log
  std::optional<SegmentSet> segments_;
  std::vector<Child> children_;  // the coordinator first
  Phase phase_ = Phase::starting;
  std::string awaited_ = "prepared";
  uint32_t stop_requests_ = 0;
  bool stop_now_ = false;
  bool waiting_gone_ = false;
  StartProgress progress_;
  std::string progress_reported_step_;
  std::chrono::steady_clock::time_point progress_reported_at_;
  std::chrono::steady_clock::time_point start_began_;
  bool folder_is_gone_ = false;
  std::chrono::steady_clock::time_point folder_seen_at_;
  std::chrono::steady_clock::time_point stop_deadline_;
  RestartPlan restarts_;
  RestartNote restart_note_;
  std::optional<std::chrono::milliseconds> restart_wait_;  // set: restart after this time
};

}  // namespace atolldb
