#include "ops/cli/cluster_finder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "ops/launcher/cluster_note.h"
#include "ops/launcher/lock_holder.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"
#include "shared/config/config_values.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

/// Returns the config that the launcher of a running cluster wrote into its run folder.
std::optional<Config> config_in(const std::string& run_dir) {
  const std::string path = run_dir + "/config.toml";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  auto config = load_config(path, Machine::detect());
  if (!config) return {};
  return *std::move(config);
}

/// Returns the cluster whose launcher holds the lock of this run folder. Returns an error if the
/// folder cannot be read.
Result<std::optional<LiveCluster>> look_in(const Config& config) {
  ATOLL_ASSIGN(const auto holder, holder_of_lock(lock_path(config)));
  if (!holder) return std::nullopt;
  auto running = config_in(config.cluster.run_dir);
  return LiveCluster{running ? *std::move(running) : config, holder->launcher};
}

/// Sets the paths of the cluster's sockets to the run folder that its launcher named.
void move_run_dir(Config& config, const std::string& run_dir) {
  const std::string own = "ipc://" + config.cluster.run_dir + "/";
  if (config.control.endpoint.starts_with(own)) {
    config.control.endpoint = "ipc://" + run_dir + "/" + config.control.endpoint.substr(own.size());
  }
  config.cluster.run_dir = run_dir;
}

/// Returns the cluster of `holder`, which a note or a lock outside the run folder has named.
Result<LiveCluster> follow(Config config, const LockHolder& holder) {
  if (!holder.run_dir.empty()) move_run_dir(config, holder.run_dir);
  ATOLL_ASSIGN(auto there, look_in(config));
  if (there && there->launcher == holder.launcher) return *std::move(there);
  return LiveCluster{std::move(config), holder.launcher, true};
}

/// Checks in this order: the run folder of this environment, the note of the config file, the lock
/// of the data.
Result<std::optional<LiveCluster>> look_everywhere(const Config& config,
                                                   const std::string& config_file) {
  auto here = look_in(config);
  if (here && *here) return here;
  auto holder = noted_cluster(canonical_config_file(config_file), config.cluster.data_dir);
  if (!holder && config.durability.mode == DurabilityMode::durable) {
    // An unreadable lock is ignored: the directory may be another user's.
    holder = holder_of_lock(directory_lock_path(config.cluster.data_dir)).value_or(std::nullopt);
  }
  if (!holder || holder->cluster != config.cluster.name) return here;
  ATOLL_ASSIGN(auto found, follow(config, *holder));
  return found;
}

/// Returns the default parents of run folders. If the environment names another runtime folder than
/// the user's standard one, only that folder is searched.
std::vector<std::string> run_roots() {
  const std::string root = fs::path(default_config().cluster.run_dir).parent_path().string();
  const std::string user = std::to_string(geteuid());
  std::vector<std::string> standard = {"/run/user/" + user + "/atoll", "/tmp/atoll-" + user};
  if (std::ranges::find(standard, root) != standard.end()) return standard;
  return {root};
}

/// Returns the overrides of the environment and of --set. An error names a setting without "=".
Result<std::vector<ConfigOverride>> all_overrides(const std::vector<std::string>& settings) {
  std::vector<ConfigOverride> overrides = environment_overrides();
  for (const std::string& setting : settings) {
    auto override = parse_override(setting);
    if (!override) {
      return make_error(ExitCode::usage, "--set " + setting +
                                             ": expected section.key=value, for example "
                                             "memory.volatile_pool=1GiB");
    }
    overrides.push_back(*std::move(override));
  }
  return overrides;
}

/// Prints the mistakes of a config, and then returns an error without a message.
Result<Config> valid_config(std::expected<Config, std::vector<ConfigError>> config) {
  if (config) return *std::move(config);
  const std::string text = to_string(config.error());
  std::fprintf(stderr, "%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
  return make_error(ExitCode::config, "");
}

std::unexpected<Error> not_running(const Config& config) {
  const std::string failure = last_failure(config);
  std::string message = "cluster \"" + config.cluster.name + "\": not running";
  message += failure.empty() ? ": start it with `atoll up`" : ": its last run failed: " + failure;
  return make_error(ExitCode::not_running, message);
}

/// Returns the running clusters of this user that have their run folders at the default places.
std::vector<LiveCluster> live_clusters() {
  std::vector<LiveCluster> live;
  for (const std::string& root : run_roots()) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
      if (!entry.is_directory(error)) continue;
      auto config = config_in(entry.path().string());
      if (!config) continue;
      auto found = look_in(*config);
      if (found && *found) live.push_back(**std::move(found));
    }
  }
  std::ranges::sort(live, {}, [](const LiveCluster& found) { return found.config.cluster.name; });
  return live;
}

Result<LiveCluster> only_one(std::vector<LiveCluster> running) {
  if (running.size() == 1) return std::move(running.front());
  if (running.empty()) {
    const Config config = default_config();
    if (!last_failure(config).empty()) return not_running(config);
    return make_error(ExitCode::not_running,
                      "no cluster runs: start one with `atoll up`, or name one that runs "
                      "elsewhere with -c FILE");
  }
  std::string names;
  for (const LiveCluster& found : running) {
    names += (names.empty() ? "" : ", ") + found.config.cluster.name;
  }
  return make_error(ExitCode::usage, "several clusters run (" + names +
                                         "): choose one with --cluster NAME or -c FILE");
}

/// The live cluster that a choice names, and its config. Without a live cluster, `config` is the
/// config that the choice names.
struct Search {
  std::optional<LiveCluster> live;
  Config config;
};

/// Returns an error unless the cluster has the name that --cluster gives. A variable of the
/// environment or --set may have replaced the name or the run folder.
Result<void> check_name(const ClusterChoice& choice, const Config& config) {
  if (choice.name.empty() || config.cluster.name == choice.name) return {};
  return make_error(ExitCode::usage, "--cluster " + choice.name +
                                         ": the environment or --set lead to the cluster \"" +
                                         config.cluster.name +
                                         "\": unset ATOLL_CLUSTER_NAME and "
                                         "ATOLL_CLUSTER_RUN_DIR, or omit --cluster");
}

Result<Search> search(const ClusterChoice& choice) {
  if (!choice.name.empty()) {
    for (LiveCluster& found : live_clusters()) {
      if (found.config.cluster.name == choice.name) return Search{found, found.config};
    }
  }
  ATOLL_ASSIGN(Config config, config_of_new_cluster(choice));
  ATOLL_ASSIGN(auto live, look_everywhere(config, choice.config_file));
  // The command line of the running cluster may have changed its config since the file was read.
  if (live) config = live->config;
  ATOLL_TRY(check_name(choice, config));
  return Search{std::move(live), std::move(config)};
}

}  // namespace

Result<std::expected<Config, std::vector<ConfigError>>> read_config_file(
    const std::string& path, const std::vector<std::string>& settings, const Machine& machine) {
  ATOLL_ASSIGN(const auto overrides, all_overrides(settings));
  return load_config(path, machine, overrides);
}

Result<Config> load_config_file(const std::string& path, const std::vector<std::string>& settings) {
  ATOLL_ASSIGN(auto config, read_config_file(path, settings, Machine::detect()));
  return valid_config(std::move(config));
}

Result<Config> config_of_new_cluster(const ClusterChoice& choice) {
  if (choice.config_file.empty()) {
    if (!choice.name.empty()) {
      const std::string name = "[cluster]\nname = " + quote_toml(choice.name) + "\n";
      const auto named = parse_config(name, "--cluster", Machine::detect());
      if (!named) {
        return make_error(ExitCode::usage, "--cluster " + choice.name + ": expected " +
                                               named.error().front().expected +
                                               ": choose another name");
      }
      ATOLL_ASSIGN(const auto overrides, all_overrides(choice.settings));
      ATOLL_ASSIGN(Config config,
                   valid_config(parse_config(name, "--cluster", Machine::detect(), overrides)));
      ATOLL_TRY(check_name(choice, config));
      return config;
    }
    ATOLL_ASSIGN(const auto overrides, all_overrides(choice.settings));
    return valid_config(parse_config("", "defaults", Machine::detect(), overrides));
  }
  Result<Config> config = load_config_file(choice.config_file, choice.settings);
  if (config && !choice.name.empty() && config->cluster.name != choice.name) {
    return make_error(ExitCode::usage, "--cluster " + choice.name + ": " + choice.config_file +
                                           " is the config of \"" + config->cluster.name +
                                           "\": give only one of --cluster and -c");
  }
  return config;
}

Result<Config> find_config(const ClusterChoice& choice) {
  if (choice.name.empty() && choice.config_file.empty()) {
    std::vector<LiveCluster> running = live_clusters();
    if (!running.empty()) {
      ATOLL_ASSIGN(auto found, only_one(std::move(running)));
      return found.config;
    }
  }
  ATOLL_ASSIGN(auto found, search(choice));
  return found.config;
}

Result<LiveCluster> find_live(const ClusterChoice& choice) {
  if (choice.name.empty() && choice.config_file.empty()) {
    auto found = only_one(live_clusters());
    if (found || found.error().code != ExitCode::not_running) return found;
    // Checks the lock of the default data directory, because the run folder may have been deleted.
    const auto defaults = look_everywhere(default_config(), "");
    if (defaults && *defaults) return **defaults;
    return found;
  }
  ATOLL_ASSIGN(auto found, search(choice));
  if (!found.live) return not_running(found.config);
  return *std::move(found.live);
}

std::vector<std::string> running_cluster_names() {
  std::vector<std::string> names;
  for (const LiveCluster& found : live_clusters()) names.push_back(found.config.cluster.name);
  return names;
}

Result<Config> find_reachable(const ClusterChoice& choice) {
  ATOLL_ASSIGN(auto found, find_live(choice));
  if (!found.is_run_folder_gone) return found.config;
  return make_error(
      ExitCode::coordinator_unreachable,
      "cluster \"" + found.config.cluster.name + "\": runs (launcher pid " +
          std::to_string(found.launcher.pid) + "), but its run folder " +
          found.config.cluster.run_dir +
          " was deleted: no client reaches it: stop it with `atoll down` and the same "
          "--cluster or -c, then start it again");
}

Result<Config> find_running(const ClusterChoice& choice) {
  Result<Config> config = find_reachable(choice);
  if (!config || !is_starting(*config)) return config;
  const StartReport report = start_report(*config).value_or(StartReport{});
  return make_error(ExitCode::recovering, "cluster \"" + config->cluster.name + "\": starts (" +
                                              report.step +
                                              "): try again when it runs: `atoll status --watch` "
                                              "shows how far it is");
}

std::optional<StartReport> start_report(const Config& config) {
  return parse_start_report(file_text(start_path(config)));
}

bool is_starting(const Config& config) {
  const auto report = start_report(config);
  return report && !report->is_served();
}

Json restarts_of(const Config& config) {
  std::ifstream file(restarts_path(config));
  if (!file) return {};
  Json note = Json::parse(file, nullptr, false);
  if (!note.is_object()) return {};
  note.erase("schema_version");
  return note;
}

Json last_failure_note(const Config& config) {
  std::ifstream file(last_failure_path(config));
  if (!file) return {};
  Json note = Json::parse(file, nullptr, false);
  if (!note.is_object() || !note.contains("message") || !note["message"].is_string()) return {};
  note.erase("schema_version");
  return note;
}

std::string last_failure(const Config& config) {
  const Json note = last_failure_note(config);
  return note.is_object() ? note["message"].get<std::string>() : "";
}

}  // namespace atolldb::cli
