// Which cluster a command means: --cluster NAME, else -c FILE, else the only one that runs.
#pragma once

#include <string>
#include <vector>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/message/control_message.h"

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

/// The effective config of the chosen cluster. Not running: code not_running, and how its last run
/// ended when that is known.
Result<Config> find_running(const ClusterChoice& choice);

/// Clusters of this user that run, from the run folders at their default place.
std::vector<Config> running_clusters();

/// How often and why the running cluster was started again (see note_restart); null: it was not.
Json restarts_of(const Config& config);

/// How the last run ended badly, from its note; empty: it did not.
std::string last_failure(const Config& config);

}  // namespace atolldb::cli
