// Table of all config keys, and declarations for the files of this folder and its tests. Parsing,
// range checks, `atoll config show`, the reference file and the tests are derived from it. A new
// key needs one member of Config, and one row in config_keys.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shared/config/config.h"

namespace atolldb {

enum class KeyKind : uint8_t {
  boolean,
  integer,
  size,           ///< "512MiB"; min, max and step in bytes
  duration,       ///< "10ms"; min, max and step in microseconds
  choice,         ///< one of `choices`
  name,           ///< letters, digits, _ and -; at most `max` bytes
  path,           ///< at most `max` bytes when made absolute
  optional_path,  ///< a path, or empty
  command,        ///< at most `max` bytes without control characters, or empty
  address,        ///< IPv4 or IPv6 literal
  endpoint,       ///< ipc:// or loopback tcp://
  paths,          ///< a list of paths
  integers,       ///< a list of distinct integers from `min` to `max`
};

/// Pointer to a key's value. A uint8_t holds an enumeration: its value is an index in `choices`.
using ConfigField = std::variant<bool*, uint8_t*, uint16_t*, int32_t*, uint32_t*, uint64_t*,
                                 std::chrono::microseconds*, std::chrono::milliseconds*,
                                 std::string*, std::vector<std::string>*, std::vector<int32_t>*>;

struct ConfigTarget {
  Config& config;
  NodeConfig& node;      ///< the current [[node]]
  uint32_t& node_count;  ///< value of `[nodes] count`, which is not a member of Config
};

struct ConfigKey {
  std::string_view section;
  std::string_view name;
  KeyKind kind;
  ConfigField (*field)(const ConfigTarget&);
  std::string_view doc;
  int64_t min = 0;
  int64_t max = 0;
  int64_t step = 1;
  std::span<const std::string_view> choices = {};
  /// The key is parsed and checked, but has no effect in this version.
  bool planned = false;
  /// `atoll config reload` changes the key in a running cluster: a member of type Live, or
  /// log.level.
  bool is_reloadable = false;

  std::string full_name() const { return std::string(section) + "." + std::string(name); }
};

/// Shown next to every planned key.
constexpr std::string_view kNoEffectYet = "no effect yet";
/// Shown next to every key that can change at run time.
constexpr std::string_view kReloadable = "Can change at run time (reload).";
constexpr std::string_view kNodesSection = "nodes";  ///< holds `[nodes] count = 2`
constexpr std::string_view kNodeSection = "node";    ///< keys of the `[[node]]` tables

/// Returns all keys, grouped by section, in display order.
std::span<const ConfigKey> config_keys();

/// Returns text like "an integer from 1 to 255" about the values of a key.
std::string expected_text(const ConfigKey& key);

/// Returns a field's value as TOML.
std::string value_text(const ConfigKey& key, const ConfigField& field);

/// Returns the text of configs/reference.toml: every key with its meaning, range and default.
std::string reference_toml();

/// Receives `key`, `expected`, `got` and `hint` of one mistake.
using ConfigReport =
    std::function<void(std::string key, std::string expected, std::string got, std::string hint)>;

/// Checks the relations between values, and between the config and the machine. REQUIRES: every
/// value is in the range of its key.
void check_config(const Config& config, const Machine& machine, const ConfigReport& report);

/// Returns the most bytes that the tables of a node's snapshot cache take: of its own frames, and
/// of the pages that the pool may lend (SnapshotCache::table_bytes).
uint64_t snapshot_table_bytes(const Config::Memory& memory);

/// Returns an absolute path without "." and "..". "~/" is the user's home; relative paths start at
/// `base`.
std::string absolute_path(const std::string& path, const std::string& base);

}  // namespace atolldb
