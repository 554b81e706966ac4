// Finds the cluster that a command means: --cluster NAME, else -c FILE, else the only one that
// runs.
#pragma once

#include <optional>
#include <string>

#include "ops/launcher/start_progress.h"
#include "shared/base/error.h"
#include "shared/base/process_id.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

struct ClusterChoice {
  std::string name;         // --cluster; empty: not given
  std::string config_file;  // -c; empty: not given
};

/// Reads a config file. Prints its mistakes as file:line:col; the error then has no message.
Result<Config> load_config_file(const std::string& path);

/// Returns the config of a new cluster: of the file, else the defaults, with the given name.
Result<Config> config_of_new_cluster(const ClusterChoice& choice);

/// Returns the config of the chosen cluster, running or not: enough to find its files. If several
/// run and none is chosen, returns a usage error that lists them.
Result<Config> find_config(const ClusterChoice& choice);

/// A cluster whose launcher lives.
struct LiveCluster {
  Config config;  // the effective one
  ProcessId launcher;
  /// Its run folder was deleted, so its sockets cannot be reached. It was found by the note of its
  /// config file or by the lock of its data (ops/launcher/README.md).
  bool is_run_folder_gone = false;
};

/// Returns the chosen cluster if its launcher lives; otherwise errors as find_running.
Result<LiveCluster> find_live(const ClusterChoice& choice);

/// Returns the effective config of a live cluster, even if it does not serve requests yet. Returns
/// code coordinator_unreachable if its run folder was deleted; other errors as find_running.
Result<Config> find_reachable(const ClusterChoice& choice);

/// Returns the effective config of the chosen cluster, as find_reachable. Returns code recovering
/// if it starts and serves no requests yet. Returns code not_running if it does not run, with the
/// end of its last run if that is known.
Result<Config> find_running(const ClusterChoice& choice);

/// Returns how often and why the running cluster was restarted (see note_restart); null: it was
/// not.
Json restarts_of(const Config& config);

/// Returns the progress of the cluster's start, or nothing if it is not starting.
std::optional<StartReport> start_report(const Config& config);
/// Returns whether the cluster starts and its coordinator serves no requests yet.
bool is_starting(const Config& config);

/// Returns the note of a failed last run: message, exit code, time, and path and errno of a failed
/// file. Returns null if the last run did not fail.
Json last_failure_note(const Config& config);
/// Returns the message of that note, or an empty text.
std::string last_failure(const Config& config);

}  // namespace atolldb::cli
