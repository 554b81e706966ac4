#include "shared/process/config_reload.h"

#include <atomic>
#include <string>
#include <type_traits>
#include <variant>

#include "shared/base/check.h"
#include "shared/config/config_keys.h"

namespace atolldb {
namespace {

void add_change(std::vector<ConfigChange>& changes, const ConfigKey& key, const std::string& name,
                const ConfigField& from, const ConfigField& to) {
  ConfigChange change = {name, value_text(key, from), value_text(key, to), key.is_reloadable};
  if (change.from != change.to) changes.push_back(std::move(change));
}

/// Stores a value that other threads may read.
void store_field(const ConfigField& to, const ConfigField& from) {
  CHECK(to.index() == from.index());
  std::visit(
      [&](auto* target) {
        using Plain = std::remove_pointer_t<decltype(target)>;
        const Plain value = *std::get<Plain*>(from);
        if constexpr (std::is_trivially_copyable_v<Plain>) {
          // Relaxed, as in Live.
          std::atomic_ref<Plain>(*target).store(value, std::memory_order_relaxed);
        } else {
          CHECK(false);  // no Live value has such a type
        }
      },
      to);
}

}  // namespace

std::vector<ConfigChange> config_changes(const Config& running, const Config& wanted) {
  CHECK(!running.cluster.run_dir.empty() && !wanted.cluster.run_dir.empty());
  Config from = running;  // copies, because a key gives access only to a mutable config
  Config to = wanted;
  auto from_count = static_cast<uint32_t>(from.nodes.size());
  auto to_count = static_cast<uint32_t>(to.nodes.size());
  NodeConfig no_node;
  std::vector<ConfigChange> changes;
  for (const ConfigKey& key : config_keys()) {
    if (key.section != kNodeSection) {
      add_change(changes, key, key.full_name(), key.field({from, no_node, from_count}),
                 key.field({to, no_node, to_count}));
      continue;
    }
    for (size_t node = 0; from_count == to_count && node < from.nodes.size(); ++node) {
      add_change(changes, key, "node[" + std::to_string(node) + "]." + std::string(key.name),
                 key.field({from, from.nodes[node], from_count}),
                 key.field({to, to.nodes[node], to_count}));
    }
  }
  return changes;
}

std::expected<Config, std::vector<ConfigError>> changed_config(
    const Config& running, const Machine& machine, std::span<const ConfigOverride> values) {
  return parse_config(to_toml(running), "the running config", machine, values);
}

void set_live_values(Config& running, const Config& wanted) {
  Config from = wanted;
  NodeConfig no_node;
  uint32_t no_count = 0;
  for (const ConfigKey& key : config_keys()) {
    // Each process applies the text log.level to its logger.
    if (!key.is_reloadable || key.full_name() == "log.level") continue;
    CHECK(key.section != kNodeSection);
    store_field(key.field({running, no_node, no_count}), key.field({from, no_node, no_count}));
  }
}

Result<Config> reload_values(Config& config, const nlohmann::json& values, const Logger& logger) {
  const auto refuse = [](const std::string& why) {
    return make_error(ExitCode::config, "config.reload: " + why + ": nothing was changed");
  };
  if (!values.is_object()) return refuse("the values are no object");
  std::vector<ConfigOverride> overrides;
  for (const auto& [key, value] : values.items()) {
    if (!value.is_string()) return refuse(key + ": its value is no text");
    overrides.push_back({"config.reload", key, value.get<std::string>()});
  }
  auto wanted = changed_config(config, Machine::detect(), overrides);
  if (!wanted) return refuse(wanted.error().front().to_string());
  for (const ConfigChange& change : config_changes(config, *wanted)) {
    if (!change.is_reloadable) return refuse(change.key + " cannot change at run time");
    logger->info("config: {} changes from {} to {}", change.key, change.from, change.to);
  }
  set_live_values(config, *wanted);
  if (values.contains("log.level")) set_level(logger, wanted->log.level);
  return *std::move(wanted);
}

}  // namespace atolldb
