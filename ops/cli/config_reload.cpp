// `atoll config reload`: changes the config of a running cluster.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "ops/cli/cluster_call.h"
#include "ops/cli/config_data.h"
#include "shared/base/try.h"
#include "shared/process/config_reload.h"

namespace atolldb::cli {
namespace {

/// A process answers within milliseconds, unless all processors are busy.
constexpr std::chrono::milliseconds kReloadTimeout{10'000};

/// Returns what the cluster is to have. Without a file, the values that it has, with those of
/// --set.
Result<Config> wanted_config(const ClusterChoice& choice, const Config& running) {
  if (!choice.config_file.empty()) return load_config_file(choice.config_file, choice.settings);
  std::vector<ConfigOverride> overrides;
  for (const std::string& setting : choice.settings) {
    const auto override = parse_override(setting);
    if (!override) {
      return make_error(ExitCode::usage, "--set " + setting +
                                             ": expected section.key=value, for example "
                                             "gleaner.interval=5min");
    }
    overrides.push_back(*override);
  }
  if (overrides.empty()) {
    return make_error(ExitCode::usage,
                      "config reload: no values are given: name the config file with -c FILE, or "
                      "single values with --set KEY=VALUE");
  }
  const auto changed = changed_config(running, Machine::detect(), overrides);
  if (changed) return *changed;
  std::fprintf(stderr, "%s", to_string(changed.error()).c_str());
  return make_error(ExitCode::config, "");
}

Json to_json(const ConfigChange& change) {
  return {{"key", change.key},
          {"from", change.from},
          {"to", change.to},
          {"reloadable", change.is_reloadable}};
}

/// Prints the keys that differ, and returns an error for those that cannot change.
Result<void> check_changes(const Config& running, const std::vector<ConfigChange>& changes) {
  for (const ConfigChange& change : changes) {
    if (change.is_reloadable) continue;
    std::fprintf(stderr, "%s: cannot change while the cluster runs: it has %s, and %s is given\n",
                 change.key.c_str(), change.from.c_str(), change.to.c_str());
  }
  if (std::ranges::all_of(changes, &ConfigChange::is_reloadable)) return {};
  return make_error(ExitCode::config,
                    fmt::format("cluster \"{}\": nothing was changed: set these keys back, or "
                                "restart the cluster with `atoll down` and `atoll up`",
                                running.cluster.name));
}

/// Warns of the new values that have no effect.
void warn_of_unused(const Config& wanted, const std::vector<ConfigChange>& changes) {
  for (const UnusedSetting& setting : unused_settings(wanted)) {
    if (std::ranges::find(changes, setting.key, &ConfigChange::key) == changes.end()) continue;
    std::fprintf(stderr, "warning: %s\n", to_string(setting).c_str());
  }
}

/// Waits until the launcher has stored the values. It uses them for restarts of the cluster.
Result<void> await_launcher(const ClusterChoice& choice, const Config& wanted) {
  const auto give_up = std::chrono::steady_clock::now() + kReloadTimeout;
  for (;;) {
    ATOLL_ASSIGN(const Config stored, find_running(choice));
    if (config_changes(stored, wanted).empty()) return {};
    if (std::chrono::steady_clock::now() > give_up) {
      return make_error(ExitCode::failed,
                        "cluster \"" + wanted.cluster.name +
                            "\": all processes have the new values, but the launcher has not "
                            "stored them for restarts: see `atoll logs launcher`");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<void> apply_changes(const ClusterChoice& choice, const Config& running, const Config& wanted,
                           const std::vector<ConfigChange>& changes) {
  Json values = Json::object();
  for (const ConfigChange& change : changes) values[change.key] = change.to;
  const Json body = {{"values", values}};
  // The coordinator is last, because it tells the launcher. If a call fails, the stored config
  // still differs, and the next reload repeats all values.
  for (uint32_t node = 0; node < running.nodes.size(); ++node) {
    ATOLL_TRY(call_node(running, node, ControlOperation::config_reload, body, kReloadTimeout));
  }
  ATOLL_TRY(call_coordinator(running, ControlOperation::config_reload, body, kReloadTimeout));
  return await_launcher(choice, wanted);
}

}  // namespace

Result<void> reload_config(const ClusterChoice& choice, const ConfigFileOptions& options) {
  ATOLL_ASSIGN(const Config running, find_running(choice));
  ATOLL_ASSIGN(const Config wanted, wanted_config(choice, running));
  const std::vector<ConfigChange> changes = config_changes(running, wanted);
  Result<void> done = check_changes(running, changes);
  warn_of_unused(wanted, changes);
  const bool applies = done && !changes.empty() && !options.dry_run;
  if (applies) done = apply_changes(choice, running, wanted, changes);
  if (options.json) {
    Json list = Json::array();
    for (const ConfigChange& change : changes) list.push_back(to_json(change));
    print_config_json({{"schema_version", 1},
                       {"cluster", running.cluster.name},
                       {"applied", applies && done.has_value()},
                       {"changes", list}});
    return done;
  }
  if (!done) return done;
  for (const ConfigChange& change : changes) {
    std::printf("%s: %s -> %s\n", change.key.c_str(), change.from.c_str(), change.to.c_str());
  }
  std::printf("cluster \"%s\": %s\n", running.cluster.name.c_str(),
              changes.empty()   ? "has these values already"
              : options.dry_run ? "nothing was changed (--dry-run)"
                                : "has the new values");
  return {};
}

}  // namespace atolldb::cli
