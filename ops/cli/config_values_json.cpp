// The effective values of a config as JSON, for `atoll config show --json`.
#include <chrono>
#include <string>
#include <type_traits>
#include <variant>

#include "ops/cli/config_data.h"
#include "shared/base/check.h"
#include "shared/config/config_keys.h"

namespace atolldb::cli {
namespace {

/// Sizes are in bytes, and times in seconds. Everything else is as in the file.
Json value_json(const ConfigKey& key, const ConfigField& field) {
  return std::visit(
      [&](const auto* value) -> Json {
        using Plain = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Plain, uint8_t>) {
          CHECK(*value < key.choices.size());
          return key.choices[*value];
        } else if constexpr (requires { value->count(); }) {
          return std::chrono::duration<double>(*value).count();
        } else {
          return *value;
        }
      },
      field);
}

Json key_json(const ConfigKey& key, const ConfigField& field, const Config& config,
              const std::string& name) {
  const auto origin = config.origins.find(name);
  return {{"value", value_json(key, field)},
          {"text", value_text(key, field)},
          {"origin", origin == config.origins.end() ? "default" : origin->second},
          {"reloadable", key.is_reloadable}};
}

}  // namespace

Json config_values_json(const Config& config) {
  Config copy = config;  // a key gives access only to a mutable config
  NodeConfig no_node;
  auto count = static_cast<uint32_t>(copy.nodes.size());
  Json values = Json::object();
  for (const ConfigKey& key : config_keys()) {
    const std::string name(key.name);
    if (key.section == kNodesSection) continue;  // the list of nodes has all of them
    if (key.section != kNodeSection) {
      values[std::string(key.section)][name] =
          key_json(key, key.field({copy, no_node, count}), config, key.full_name());
      continue;
    }
    for (size_t node = 0; node < copy.nodes.size(); ++node) {
      values["node"][node][name] = key_json(key, key.field({copy, copy.nodes[node], count}), config,
                                            "node[" + std::to_string(node) + "]." + name);
    }
  }
  return {{"schema_version", 1}, {"cluster", config.cluster.name}, {"values", values}};
}

}  // namespace atolldb::cli
