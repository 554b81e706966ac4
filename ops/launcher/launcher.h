// The parent of a cluster's processes: starts them step by step, watches them, stops them. Maps no
// shared memory, so that nothing a crash tore can take it along. Fail-stop: when one process ends
// or hangs, all are killed and nothing is left behind.
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
#include "ops/launcher/start_progress.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

struct LaunchOptions {
  /// Folder of atoll-coordinator and atoll-node; empty: the own program's.
  std::string binary_dir;
  /// As canonical_config_file gives it: later commands with this file find the cluster in every
  /// environment. Empty: they find it by its run folder only.
  std::string config_file = {};
  /// Moves what the data directory holds aside before the start.
  bool discards_data = false;
  /// Start without what cannot be read (engine/log/salvage.h).
  bool salvages = false;
  /// Signals to obey (SIGINT, SIGTERM: the first stops in order, the second at once); -1: none.
  int signal_fd = -1;
  /// Whoever waits for the start; when its end is closed before that, the start is given up.
  int waiting_fd = -1;
  /// Called when a recovery begins, with what can be read until it ends ("snapshot 3 of epoch 120";
  /// empty: nothing). By the launcher's thread; in the first start only.
  std::function<void(const std::string& readable)> on_recovering = {};
  /// Called with each step of a start and twice a second meanwhile, by the launcher's thread; in
  /// the first start only.
  std::function<void(const StartReport&)> on_progress = {};
  /// Whoever waits is content with something to read: the start goes on without.
  bool until_readable = false;
  /// With cluster.restart = "recover".
  RestartLimits restarts = {};
};

/// All calls from one thread, which must live as long as the cluster (children die with it), but
/// for request_stop.
class Launcher {
 public:
  Launcher(Config config, LaunchOptions options, Logger logger);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  /// Kills what still runs and cleans up.
  ~Launcher();

  /// Returns when the cluster runs. An error: nothing is left of it.
  Result<void> start();
  /// Returns when the cluster has stopped as it was asked to. An error: it failed; says who and
  /// how; nothing is left of it. With cluster.restart = "recover" it is started again before, as
  /// often as options.restarts and the cause of the failure allow. `started`: what start() said;
  /// one that has failed counts as a failure of the running cluster.
  Result<void> supervise(Result<void> started = {});
  /// Any thread. The second request, or `now`, kills.
  void request_stop(bool now);

 private:
  enum class Phase { starting, running, draining, stopping_nodes, stopping_coordinator, stopped };

  /// All before the first process; the run folder stays over restarts.
  Result<void> create();
  Result<void> acquire_folder();
  Result<void> leave_note();
  /// Warns once when the run folder has been deleted.
  void watch_folder();
  /// The notes of a start that lasts: `awaited_` has changed, or time has passed.
  void begin_progress();
  void note_step();
  void report_progress();
  void end_progress();
  Result<void> discard();
  Result<void> salvage();
  Result<void> spawn_all();
  Result<void> run_until(Phase phase);
  /// Waits for events once and does what follows from them.
  Result<void> turn();
  /// False when there was none.
  bool take_events();
  Result<void> stop_at_once();
  void receive(Child& child);
  void take_line(Child& child, const std::string& line);
  Result<void> check_children();
  Result<void> advance();
  Result<void> advance_start();
  void take_requests();
  void begin_drain();
  bool all_reached(const char* step) const;
  bool nodes_ended() const;
  void send_all(const char* command);
  Error died(const Child& child) const;
  /// Null: none has said that it failed.
  const Child* most_telling_failure() const;
  /// Kills all, cleans up, notes the failure; hands the error on. When the cluster is to be started
  /// again, the run folder stays and restart_wait_ says when.
  std::unexpected<Error> fail(Error error);
  void plan_restart(Error& error, Phase failed_in);
  /// REQUIRES: restart_wait_. Returns when the cluster runs again, or has stopped as it was asked
  /// to. An error: as fail.
  Result<void> restart();
  /// False when the cluster was told to stop meanwhile.
  bool wait_for_restart(std::chrono::milliseconds wait);
  void note_restart_now(bool is_under_way);
  void kill_all();
  /// Segments and the lock of the data.
  void release();
  void clean_up();
  int poll_timeout_ms() const;
  std::chrono::milliseconds stop_patience() const;

  Config config_;
  LaunchOptions options_;
  Logger logger_;
  UniqueFd stop_fd_;                 // eventfd: 1 = stop, kStopNow = at once
  std::optional<ClusterNote> note_;  // with a config file; stays over restarts, as folder_
  std::optional<RunFolder> folder_;
  std::optional<DataLock> data_lock_;  // with a log
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
  bool folder_is_gone_ = false;
  std::chrono::steady_clock::time_point folder_seen_at_;
  std::chrono::steady_clock::time_point stop_deadline_;
  RestartPlan restarts_;
  RestartNote restart_note_;
  std::optional<std::chrono::milliseconds> restart_wait_;  // it is to be started again after this
};

}  // namespace atolldb
