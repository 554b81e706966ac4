// Which cluster a command means: --cluster NAME, else -c FILE, else the only one that runs.
#pragma once

#include <optional>
#include <string>

#include "ops/launcher/start_progress.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/message/control_message.h"
#include "shared/process/process_id.h"

namespace atolldb::cli {

struct ClusterChoice {
  std::string name;         // --cluster; empty: not given
  std::string config_file;  // -c; empty: not given
};

/// Reads a config file. Its mistakes are printed here, as file:line:col; the error has no message.
Result<Config> load_config_file(const std::string& path);

/// The config that a new cluster would have: of the file, else the defaults, under the name.
Result<Config> config_of_new_cluster(const ClusterChoice& choice);

/// The config that the chosen cluster has or had, whether it runs or not: enough to find its files.
/// Several run and none is chosen: a usage error that lists them.
Result<Config> find_config(const ClusterChoice& choice);

/// A cluster whose launcher lives.
struct LiveCluster {
  Config config;  // the effective one
  ProcessId launcher;
  /// Its run folder was deleted: its sockets cannot be reached. Found by the note of its config
  /// file or by the lock of its data (ops/launcher/README.md).
  bool is_run_folder_gone = false;
};

/// The chosen cluster, if it lives. Not running: as find_running.
Result<LiveCluster> find_live(const ClusterChoice& choice);

/// The effective config of a cluster that lives, whether it serves requests yet or not. Its run
/// folder is gone: code coordinator_unreachable. Not running: as find_running.
Result<Config> find_reachable(const ClusterChoice& choice);

/// The effective config of the chosen cluster, as find_reachable. It starts and serves no requests
/// yet: code recovering. Not running: code not_running, and how its last run ended when that is
/// known.
Result<Config> find_running(const ClusterChoice& choice);

/// How often and why the running cluster was started again (see note_restart); null: it was not.
Json restarts_of(const Config& config);

/// How far the cluster's start is; nothing: it does not start.
std::optional<StartReport> start_report(const Config& config);
/// The cluster starts, and its coordinator serves no requests yet.
bool is_starting(const Config& config);

/// The note of how the last run ended badly: message, exit code, time, and of a failed file its
/// path and errno. Null: it did not.
Json last_failure_note(const Config& config);
/// Its message; empty: the last run did not end badly.
std::string last_failure(const Config& config);

}  // namespace atolldb::cli
