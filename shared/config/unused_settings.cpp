// Values of the user that have no effect, because of durability.scheme.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "shared/base/check.h"
#include "shared/config/config_keys.h"
#include "shared/config/memory_split.h"

namespace atolldb {
namespace {

/// Keys that only snapshots use. "gleaner.disk_reserve" is not among them: checkpoints leave it
/// free, too. Nor are the keys of the scrub, which also reads checkpoints and logs.
constexpr std::array<std::string_view, 19> kKeysOfSnapshots{
    "gleaner.interval",       "gleaner.log_volume",
    "gleaner.pool_low_water", "gleaner.pool_high_water",
    "gleaner.keep_hot_pages", "gleaner.space_percent",
    "gleaner.rewrite_limit",  "gleaner.pacing",
    "gleaner.capture_pages",  "snapshot.keep",
    "snapshot.warm_cache",    "memory.snapshot_cache",
    "memory.exchange",        "memory.cold_writes",
    "memory.lend_pool",       "node.mappers",
    "node.reducers",          "node.recovery_threads",
    "node.installers"};

/// Returns whether only checkpoints and their recovery use the key.
bool is_key_of_checkpoints(const std::string& key) {
  return key.starts_with("durability.checkpoint_") || key == "durability.replay_order";
}

/// Returns why the key has no effect, or an empty text.
std::string_view reason_of(DurabilityScheme scheme, const std::string& key) {
  switch (scheme) {
    case DurabilityScheme::gleaned:
      return is_key_of_checkpoints(key)
                 ? "durability.scheme is \"gleaned\", which takes snapshots and no checkpoints"
                 : "";
    case DurabilityScheme::silor:
      return std::ranges::find(kKeysOfSnapshots, key) != kKeysOfSnapshots.end()
                 ? "durability.scheme is \"silor\", which takes checkpoints and no snapshots"
                 : "";
  }
  CHECK(false);
}

}  // namespace

std::vector<UnusedSetting> unused_settings(const Config& config) {
  Config copy = config;  // a key gives access only to a mutable config
  NodeConfig no_node;
  auto count = static_cast<uint32_t>(copy.nodes.size());
  CHECK(count != 0);
  std::vector<UnusedSetting> unused;
  const auto check = [&](const ConfigKey& key, const std::string& name, NodeConfig& node) {
    const std::string_view reason = reason_of(config.durability.scheme, key.full_name());
    const auto origin = config.origins.find(name);
    if (reason.empty() || origin == config.origins.end()) return;
    if (origin->second == kOriginOfSplit) return;  // the user has set memory.total instead
    const std::string value = value_text(key, key.field({copy, node, count}));
    DCHECK(!value.empty());
    unused.push_back({name, value, std::string(reason)});
  };
  for (const ConfigKey& key : config_keys()) {
    if (key.section != kNodeSection) {
      check(key, key.full_name(), no_node);
      continue;
    }
    for (size_t node = 0; node < copy.nodes.size(); ++node) {
      check(key, "node[" + std::to_string(node) + "]." + std::string(key.name), copy.nodes[node]);
    }
  }
  return unused;
}

std::string to_string(const UnusedSetting& setting) {
  return setting.key + " = " + setting.value + " has no effect: " + setting.reason;
}

}  // namespace atolldb
