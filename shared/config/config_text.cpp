// Text of configs and keys: for display, for child processes and for the reference file.
#include <algorithm>
#include <sstream>
#include <string>
#include <type_traits>

#include "shared/base/check.h"
#include "shared/config/config.h"
#include "shared/config/config_keys.h"
#include "shared/config/config_values.h"

namespace atolldb {
namespace {

std::string quoted_list(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) {
    if (!list.empty()) list += ", ";
    list += quote_toml(word);
  }
  return list;
}

/// Returns ` from A to B[, a multiple of S]`, with numbers in the key's unit.
std::string range_text(const ConfigKey& key, std::string (*format)(int64_t)) {
  CHECK(key.min < key.max);
  std::string text = " from " + format(key.min) + " to " + format(key.max);
  if (key.step > 1) text += ", a multiple of " + format(key.step);
  return text;
}

std::string plain(int64_t number) { return std::to_string(number); }
std::string quoted_size(int64_t bytes) { return quote_toml(format_size(bytes)); }
std::string quoted_duration(int64_t us) { return quote_toml(format_duration_us(us)); }

template <typename T>
std::string scalar_text(const ConfigKey& key, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    CHECK(value < key.choices.size());
    return quote_toml(key.choices[value]);
  } else if constexpr (std::is_integral_v<T>) {
    const auto number = static_cast<int64_t>(value);
    return key.kind == KeyKind::size ? quoted_size(number) : plain(number);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return quote_toml(value);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>> ||
                       std::is_same_v<T, std::vector<int32_t>>) {
    std::string list = "[";
    for (const auto& entry : value) {
      if (list.size() > 1) list += ", ";
      list += scalar_text(key, entry);
    }
    return list + "]";
  } else {
    return quoted_duration(std::chrono::duration_cast<std::chrono::microseconds>(value).count());
  }
}

/// Writes the section headings, and the keys below them.
class Writer {
 public:
  Writer(const Config& config, bool with_origins) : config_(config), with_origins_(with_origins) {}

  std::string write() {
    std::string_view section;
    for (const ConfigKey& key : config_keys()) {
      if (key.section == section) continue;
      section = key.section;
      if (section == kNodesSection) continue;  // the [[node]] tables replace it
      if (section == kNodeSection) {
        for (size_t index = 0; index < config_.nodes.size(); ++index) {
          write_section("[[node]]", section, config_.nodes[index],
                        "node[" + std::to_string(index) + "]");
        }
      } else {
        write_section("[" + std::string(section) + "]", section, unused_node_,
                      std::string(section));
      }
    }
    return out_.str();
  }

 private:
  void write_section(const std::string& heading, std::string_view section, NodeConfig& node,
                     const std::string& origin_prefix) {
    out_ << (out_.tellp() > 0 ? "\n" : "") << heading << "\n";
    for (const ConfigKey& key : config_keys()) {
      if (key.section != section) continue;
      std::string line = std::string(key.name) + " = " +
                         value_text(key, key.field({config_, node, unused_count_}));
      CHECK(line.find('\n') == std::string::npos);
      if (with_origins_) {
        constexpr size_t kOriginColumn = 40;
        line.resize(std::max(line.size() + 2, kOriginColumn), ' ');
        const auto origin = config_.origins.find(origin_prefix + "." + std::string(key.name));
        line += "# " + (origin == config_.origins.end() ? "default" : origin->second);
        if (key.planned) line += " (" + std::string(kNoEffectYet) + ")";
      }
      out_ << line << "\n";
    }
  }

  Config config_;  // a copy, because a key gives access only to a mutable config
  NodeConfig unused_node_;
  uint32_t unused_count_ = 0;
  bool with_origins_;
  std::ostringstream out_;
};

/// Returns the text with each line as a comment.
std::string comment(std::string_view text) {
  std::string lines = "# ";
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += "# ";
  }
  return lines + "\n";
}

}  // namespace

std::string value_text(const ConfigKey& key, const ConfigField& field) {
  return std::visit([&](const auto* value) { return scalar_text(key, *value); }, field);
}

std::string expected_text(const ConfigKey& key) {
  switch (key.kind) {
    case KeyKind::boolean:
      return "true or false";
    case KeyKind::integer:
      return "an integer" + range_text(key, plain);
    case KeyKind::size:
      return "a size" + range_text(key, quoted_size);
    case KeyKind::duration:
      return "a time" + range_text(key, quoted_duration);
    case KeyKind::choice:
      return "one of " + quoted_list(key.choices);
    case KeyKind::name:
      return plain(key.min) + " to " + plain(key.max) + " letters, digits, \"_\" or \"-\"";
    case KeyKind::path:
      return "a path of " + plain(key.min) + " to " + plain(key.max) + " bytes";
    case KeyKind::optional_path:
      return "\"\", or a path of " + plain(key.min) + " to " + plain(key.max) + " bytes";
    case KeyKind::command:
      return "\"\", or a command of " + plain(key.min) + " to " + plain(key.max) + " bytes";
    case KeyKind::address:
      return "an IPv4 or IPv6 address";
    case KeyKind::endpoint:
      return "\"ipc://<absolute path>\" or \"tcp://<loopback address>:<port>\" of at most " +
             plain(key.max) + " bytes";
    case KeyKind::paths:
      return "a list of different paths of " + plain(key.min) + " to " + plain(key.max) + " bytes";
    case KeyKind::integers:
      return "a list of different integers" + range_text(key, plain);
  }
  CHECK(false);
}

std::string show_config(const Config& config) { return Writer(config, true).write(); }

std::string to_toml(const Config& config) { return Writer(config, false).write(); }

uint64_t config_digest(const Config& config) {
  // FNV-1a: stable across processes and compilers, unlike std::hash.
  uint64_t digest = 0xcbf29ce484222325;
  for (const char c : to_toml(config)) {
    digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return digest;
}

std::string durability_text(const Config& config) {
  const Config::Durability& durability = config.durability;
  std::string emulation;
  if (durability.emulated_latency.count() != 0) {
    emulation = "emulated latency " + format_duration_us(durability.emulated_latency.count());
  }
  const std::pair<const char*, uint32_t> delays[] = {{"page read", durability.nvm_read_ns},
                                                     {"write", durability.nvm_write_ns},
                                                     {"block write", durability.nvm_block_ns}};
  for (const auto& [what, ns] : delays) {
    if (ns == 0) continue;
    emulation += (emulation.empty() ? "" : ", ") + std::string("emulated NVRAM ") +
                 std::to_string(ns) + " ns per " + what;
  }
  switch (config.durability.mode) {
    case DurabilityMode::off:
      return "off";
    case DurabilityMode::durable:
      return emulation.empty() ? "durable" : "durable (" + emulation + ")";
    case DurabilityMode::measure:
      return "null log: nothing is durable";
  }
  CHECK(false);
}

const std::string& log_directory(const Config& config, uint32_t node, uint32_t logger) {
  CHECK(node < config.nodes.size());
  const std::vector<std::string>& own = config.nodes[node].directories;
  return own.empty() ? config.cluster.data_dir : own[logger % own.size()];
}

std::vector<std::string> node_directories(const Config& config) {
  std::vector<std::string> all;
  for (const NodeConfig& node : config.nodes) {
    all.insert(all.end(), node.directories.begin(), node.directories.end());
  }
  return all;
}

std::string ConfigError::to_string() const {
  std::string text = file + ":";
  if (line != 0) text += std::to_string(line) + ":" + std::to_string(column) + ":";
  if (!key.empty()) text += " " + key + ":";
  text += " expected " + expected + ", got " + got;
  if (!hint.empty()) text += "; " + hint;
  return text;
}

std::string to_string(const std::vector<ConfigError>& errors) {
  std::string text;
  for (const ConfigError& error : errors) text += error.to_string() + "\n";
  return text;
}

std::string reference_toml() {
  std::string out =
      "# Every key of an Atoll cluster, with its meaning, its values and its default.\n"
      "# All keys are optional; what is commented out has a default that depends on the user.\n"
      "# Sizes are written \"512MiB\" (B, KiB, MiB, GiB, TiB), times \"10ms\" (us, ms, s, min, "
      "h).\n"
      "# Relative paths are relative to the folder of the config file; \"~/\" is the home folder.\n"
      "# `atoll config check FILE` validates a file, `atoll config show FILE` prints what holds.\n"
      "# `atoll config reload` changes the keys with the word \"reload\" in a running cluster.\n";
  Config config;
  NodeConfig node;
  auto node_count = static_cast<uint32_t>(config.nodes.size());
  std::string_view section;
  for (const ConfigKey& key : config_keys()) {
    CHECK(!key.doc.empty());
    const bool of_node = key.section == kNodeSection;
    if (key.section == section) {
      out += "\n";
    } else {
      section = key.section;
      out += of_node ? "\n# One such table for each node, instead of [nodes]:\n# [[node]]\n"
                     : "\n[" + std::string(section) + "]\n";
    }
    out += comment(key.doc);
    if (key.planned) out += "# (" + std::string(kNoEffectYet) + ")\n";
    out += "# Value: " + expected_text(key) + ".\n";
    if (key.is_reloadable) out += "# " + std::string(kReloadable) + "\n";
    const std::string value = value_text(key, key.field({config, node, node_count}));
    const bool may_be_empty = key.kind == KeyKind::optional_path || key.kind == KeyKind::command;
    const bool depends_on_user = value == "\"\"" && !may_be_empty;
    out += (of_node || depends_on_user ? "# " : "") + std::string(key.name) + " = " + value + "\n";
  }
  return out;
}

}  // namespace atolldb
