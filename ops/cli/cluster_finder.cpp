#include "ops/cli/cluster_finder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "ops/launcher/run_folder.h"
#include "shared/config/config_values.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

/// The config that a running cluster's launcher wrote into its run folder.
std::optional<Config> config_in(const std::string& run_dir) {
  const std::string path = run_dir + "/config.toml";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  auto config = load_config(path, Machine::detect());
  if (!config) return {};
  return *std::move(config);
}

std::optional<Config> running_config(const std::string& run_dir) {
  auto config = config_in(run_dir);
  if (!config || !running_launcher(*config)) return {};
  return config;
}

std::unexpected<Error> not_running(const Config& config) {
  const std::string failure = last_failure(config);
  std::string message = "cluster \"" + config.cluster.name + "\": not running";
  message += failure.empty() ? ": start it with `atoll up`" : ": its last run failed: " + failure;
  return make_error(ExitCode::not_running, message);
}

Result<Config> only_one(std::vector<Config> running) {
  if (running.size() == 1) return std::move(running.front());
  if (running.empty()) {
    const Config config = default_config();
    if (!last_failure(config).empty()) return not_running(config);
    return make_error(ExitCode::not_running,
                      "no cluster runs: start one with `atoll up`, or name one that runs "
                      "elsewhere with -c FILE");
  }
  std::string names;
  for (const Config& config : running) {
    names += (names.empty() ? "" : ", ") + config.cluster.name;
  }
  return make_error(ExitCode::usage, "several clusters run (" + names +
                                         "): choose one with --cluster NAME or -c FILE");
}

}  // namespace

Result<Config> load_config_file(const std::string& path) {
  auto config = load_config(path, Machine::detect());
  if (config) return *std::move(config);
  const std::string text = to_string(config.error());
  std::fprintf(stderr, "%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
  return make_error(ExitCode::config, "");
}

Result<Config> config_of_new_cluster(const ClusterChoice& choice) {
  if (choice.config_file.empty() && choice.name.empty()) return default_config();
  if (choice.config_file.empty()) {
    const std::string text = "[cluster]\nname = " + quote_toml(choice.name) + "\n";
    auto config = parse_config(text, "--cluster", Machine::detect());
    if (config) return *std::move(config);
    return make_error(ExitCode::usage, "--cluster " + choice.name + ": expected " +
                                           config.error().front().expected +
                                           ": choose another name");
  }
  Result<Config> config = load_config_file(choice.config_file);
  if (config && !choice.name.empty() && config->cluster.name != choice.name) {
    return make_error(ExitCode::usage, "--cluster " + choice.name + ": " + choice.config_file +
                                           " is the config of \"" + config->cluster.name +
                                           "\": give only one of --cluster and -c");
  }
  return config;
}

Result<Config> find_config(const ClusterChoice& choice) {
  if (!choice.name.empty()) {
    for (Config& config : running_clusters()) {
      if (config.cluster.name == choice.name) return std::move(config);
    }
  }
  if (choice.name.empty() && choice.config_file.empty()) {
    std::vector<Config> running = running_clusters();
    if (!running.empty()) return only_one(std::move(running));
  }
  Result<Config> config = config_of_new_cluster(choice);
  if (!config) return config;
  // What runs may have been changed by its command line since the file was read.
  if (auto running = running_config(config->cluster.run_dir)) return *std::move(running);
  return config;
}

Result<Config> find_running(const ClusterChoice& choice) {
  if (choice.name.empty() && choice.config_file.empty()) {
    return only_one(running_clusters());
  }
  Result<Config> config = find_config(choice);
  if (!config) return config;
  if (!running_launcher(*config)) return not_running(*config);
  return config;
}

std::vector<Config> running_clusters() {
  std::vector<Config> running;
  const fs::path root = fs::path(default_config().cluster.run_dir).parent_path();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    if (!entry.is_directory(error)) continue;
    if (auto config = running_config(entry.path().string())) running.push_back(*std::move(config));
  }
  std::ranges::sort(running, {}, [](const Config& config) { return config.cluster.name; });
  return running;
}

Json restarts_of(const Config& config) {
  std::ifstream file(restarts_path(config));
  if (!file) return {};
  Json note = Json::parse(file, nullptr, false);
  if (!note.is_object()) return {};
  note.erase("schema_version");
  return note;
}

std::string last_failure(const Config& config) {
  std::ifstream file(last_failure_path(config));
  if (!file) return "";
  const auto note = nlohmann::json::parse(file, nullptr, false);
  if (!note.is_object() || !note.contains("message") || !note["message"].is_string()) return "";
  return note["message"].get<std::string>();
}

}  // namespace atolldb::cli
