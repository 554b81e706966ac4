// Finds the cluster that a command refers to: --cluster NAME, else -c FILE, else the only running
// cluster.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "ops/launcher/start_progress.h"
#include "shared/base/error.h"
#include "shared/base/process_id.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

struct ClusterChoice {
  std::string name;         // --cluster; empty: not given
  std::string config_file;  // -c; empty: not given
  /// --set, as "key=value". Only commands that start a cluster have it.
  std::vector<std::string> settings{};
};

/// Reads a config file, and applies the environment and the settings (ClusterChoice). Prints its
/// mistakes as file:line:col, and then returns an error without a message.
Result<Config> load_config_file(const std::string& path,
                                const std::vector<std::string>& settings = {});

/// Does the same, and returns the mistakes. `machine`: the machine that the config is for.
Result<std::expected<Config, std::vector<ConfigError>>> read_config_file(
    const std::string& path, const std::vector<std::string>& settings, const Machine& machine);

/// Returns the config of a new cluster, from the file or else the defaults, with the given name.
Result<Config> config_of_new_cluster(const ClusterChoice& choice);

/// Returns the config of the chosen cluster, running or not. The config is enough to find its
/// files. Returns a usage error that lists the running clusters if there are several and none is
/// chosen.
Result<Config> find_config(const ClusterChoice& choice);

/// A cluster whose launcher is alive.
struct LiveCluster {
  Config config;  // the config that the cluster uses
  ProcessId launcher;
  /// True: the run folder was deleted, so the sockets cannot be reached. The cluster was found by
  /// the note of its config file or by the lock of its data (ops/launcher/README.md).
  bool is_run_folder_gone = false;
};

/// Returns the chosen cluster, or code not_running if its launcher is not alive.
Result<LiveCluster> find_live(const ClusterChoice& choice);

/// Returns the names of this user's live clusters whose run folders are at the default places.
std::vector<std::string> running_cluster_names();

/// Returns the config that a live cluster uses, even if it does not serve requests yet. Returns
/// code coordinator_unreachable if its run folder was deleted, or code not_running if its launcher
/// is not alive.
Result<Config> find_reachable(const ClusterChoice& choice);

/// Returns the config that the chosen cluster uses. Returns code recovering if the cluster starts
/// and serves no requests yet. Returns code not_running if it does not run; the message also says
/// how its last run ended, if that is known. Other errors are those of find_reachable.
Result<Config> find_running(const ClusterChoice& choice);

/// Returns how often and why the running cluster was restarted (see note_restart). Returns null if
/// it was not restarted.
Json restarts_of(const Config& config);

/// Returns the progress of the cluster's start, or nothing if it is not starting.
std::optional<StartReport> start_report(const Config& config);
/// Returns whether the cluster starts and its coordinator serves no requests yet.
bool is_starting(const Config& config);

/// Returns the note of a failed last run: message, exit code, time, and path and errno of a failed
/// file. Returns null if the last run did not fail.
Json last_failure_note(const Config& config);
/// Returns the message of last_failure_note, or an empty text.
std::string last_failure(const Config& config);

}  // namespace atolldb::cli
