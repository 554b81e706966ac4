// Reload of the keys that can change while a cluster runs (ConfigKey::is_reloadable): `atoll config
// reload` finds the changes, and each process of the cluster applies them.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// A key whose value differs between two configs.
struct ConfigChange {
  std::string key;   // "gleaner.interval", "node[1].workers", "nodes.count"
  std::string from;  // as TOML
  std::string to;
  bool is_reloadable = false;

  bool operator==(const ConfigChange&) const = default;
};

/// Returns the keys whose values differ, in the order of config_keys. If the numbers of nodes
/// differ, compares no keys of nodes. REQUIRES: both configs are complete (resolve_defaults).
std::vector<ConfigChange> config_changes(const Config& running, const Config& wanted);

/// Returns the config with these values, checked as a file would be.
std::expected<Config, std::vector<ConfigError>> changed_config(
    const Config& running, const Machine& machine, std::span<const ConfigOverride> values);

/// Copies all values of type Live. Thread: any, one at a time; other threads may read the values.
void set_live_values(Config& running, const Config& wanted);

/// Applies new values to the config of a process and to the level of its logger. `values`: TOML
/// texts by key, for example {"gleaner.interval": "\"1min\""}. Returns the new config. Returns code
/// config, and changes nothing, if a value is wrong or its key cannot change at run time. Thread:
/// any, one at a time.
Result<Config> reload_values(Config& config, const nlohmann::json& values, const Logger& logger);

}  // namespace atolldb
