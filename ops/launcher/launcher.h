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
#include "ops/launcher/data_lock.h"
#include "ops/launcher/run_folder.h"
#include "ops/launcher/segment_set.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

struct LaunchOptions {
  /// Folder of atoll-coordinator and atoll-node; empty: the own program's.
  std::string binary_dir;
  /// Moves what the data directory holds aside before the start.
  bool discards_data = false;
  /// Signals to obey (SIGINT, SIGTERM: the first stops in order, the second at once); -1: none.
  int signal_fd = -1;
  /// Whoever waits for the start; when its end is closed before that, the start is given up.
  int waiting_fd = -1;
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
  /// how; nothing is left of it.
  Result<void> supervise();
  /// Any thread. The second request, or `now`, kills.
  void request_stop(bool now);

 private:
  enum class Phase { starting, running, draining, stopping_nodes, stopping_coordinator, stopped };

  Result<void> create();
  Result<void> discard();
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
  /// Kills all, cleans up, notes the failure; hands the error on.
  std::unexpected<Error> fail(Error error);
  void kill_all();
  void clean_up();
  int poll_timeout_ms() const;
  std::chrono::milliseconds stop_patience() const;

  Config config_;
  LaunchOptions options_;
  Logger logger_;
  UniqueFd stop_fd_;  // eventfd: 1 = stop, kStopNow = at once
  std::optional<RunFolder> folder_;
  std::optional<DataLock> data_lock_;  // with a log
  std::optional<SegmentSet> segments_;
  std::vector<Child> children_;  // the coordinator first
  Phase phase_ = Phase::starting;
  std::string awaited_ = "prepared";
  uint32_t stop_requests_ = 0;
  bool stop_now_ = false;
  bool waiting_gone_ = false;
  std::chrono::steady_clock::time_point stop_deadline_;
};

}  // namespace atolldb
