#include <arpa/inet.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>
#include <variant>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/path_errors.h"
#include "shared/config/config.h"
#include "shared/config/config_keys.h"
#include "shared/config/config_values.h"

namespace atolldb {
namespace {

using namespace config_limits;

/// Returns the value as written in the file, truncated to a readable length.
std::string describe(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  std::string text;
  if (const auto* string = node.as_string()) {
    text = quote_toml(string->get());
  } else if (const auto* integer = node.as_integer()) {
    text = std::to_string(integer->get());
  } else {
    std::ostringstream stream;
    node.visit([&](const auto& value) {
      if constexpr (toml::is_value<decltype(value)>) stream << value;
    });
    text = stream.str();
  }
  constexpr size_t kMaxShownBytes = 80;
  if (text.size() > kMaxShownBytes) {
    const std::string whole = std::to_string(text.size());
    text.resize(kMaxShownBytes);
    text += "... (" + whole + " bytes)";
  }
  return text;
}

bool is_name(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_address(const std::string& text) {
  in6_addr parsed;
  return inet_pton(AF_INET, text.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

/// Accepts ipc paths and loopback addresses. Other addresses would need authentication, which does
/// not exist yet.
bool is_endpoint(std::string_view text) {
  if (text.starts_with("ipc://")) {
    return text.size() > 7 && text[6] == '/' && !has_control_character(text);
  }
  if (!text.starts_with("tcp://")) return false;
  text.remove_prefix(6);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string host(text.substr(0, colon));
  const std::string_view port = text.substr(colon + 1);
  int number = 0;
  const char* end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, number);
  if (error != std::errc{} || rest != end || number < 1 || number > kMaxPort) return false;
  in_addr address;
  return host == "[::1]" ||
         (inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

/// A valid value of a key: a number in the key's unit, the index of a choice, or a text.
using Value = std::variant<int64_t, std::string>;

/// Stores a value, or appends it to a list.
void store(const ConfigKey& key, const ConfigField& field, const Value& value) {
  const auto number = [&] { return std::get<int64_t>(value); };
  const auto text = [&] {
    const auto* given = std::get_if<std::string>(&value);
    CHECK(given != nullptr || number() < std::ssize(key.choices));
    return given != nullptr ? *given : std::string(key.choices[static_cast<size_t>(number())]);
  };
  std::visit(
      [&](auto* target) {
        CHECK(target != nullptr);
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool>) {
          *target = number() != 0;
        } else if constexpr (std::is_integral_v<T>) {
          CHECK(std::in_range<T>(number()));
          CHECK(key.kind != KeyKind::choice || number() < std::ssize(key.choices));
          *target = static_cast<T>(number());
        } else if constexpr (std::is_same_v<T, std::string>) {
          *target = text();
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          target->push_back(text());
        } else if constexpr (std::is_same_v<T, std::vector<int32_t>>) {
          CHECK(std::in_range<int32_t>(number()));
          target->push_back(static_cast<int32_t>(number()));
        } else {
          *target = std::chrono::duration_cast<T>(std::chrono::microseconds(number()));
          CHECK(*target ==
                std::chrono::microseconds(number()));  // exact, because of the key's step
        }
      },
      field);
}

bool in_range(const ConfigKey& key, int64_t number) {
  return number >= key.min && number <= key.max && number % key.step == 0;
}

class Parser {
 public:
  Parser(std::string file, const Machine& machine, std::span<const ConfigOverride> overrides)
      : file_(std::move(file)), machine_(machine), overrides_(overrides) {
    std::error_code ignored;
    base_ = std::filesystem::absolute(file_, ignored).parent_path().string();
  }

  /// REQUIRES: it is called once.
  std::expected<Config, std::vector<ConfigError>> parse(std::string_view text) {
    CHECK(errors_.empty() && positions_.empty());
    try {
      toml::table root = toml::parse(text, file_);
      // The number of nodes first: a value of a node replaces [nodes] by tables.
      const auto is_count = [](const ConfigOverride& override) {
        return override.key == "nodes.count";
      };
      for (const ConfigOverride& override : overrides_) {
        if (is_count(override)) apply(override, root);
      }
      for (const ConfigOverride& override : overrides_) {
        if (!is_count(override)) apply(override, root);
      }
      parse_root(root);
    } catch (const toml::parse_error& error) {
      errors_.push_back({file_, error.source().begin.line, error.source().begin.column, "",
                         "a TOML file", std::string(error.description()), ""});
    }
    if (!errors_.empty()) {
      std::ranges::stable_sort(errors_, {}, [](const ConfigError& error) {
        return std::pair(error.line, error.column);
      });
      return std::unexpected(std::move(errors_));
    }
    CHECK(!config_.nodes.empty() && config_.nodes.size() <= kMaxNodes);
    return std::move(config_);
  }

 private:
  using Position = toml::source_position;

  void add_error(Position at, std::string key, std::string expected, std::string got,
                 std::string hint = "") {
    CHECK(!expected.empty());
    const auto source = overridden_.find(key);
    if (source != overridden_.end()) at = {};
    errors_.push_back({source == overridden_.end() ? file_ : source->second, at.line, at.column,
                       std::move(key), std::move(expected), std::move(got), std::move(hint)});
  }

  /// Puts the value of an override into the tables of the file.
  void apply(const ConfigOverride& override, toml::table& root) {
    CHECK(!override.source.empty() && !override.key.empty());
    const size_t dot = override.key.rfind('.');
    const std::string table = dot == std::string::npos ? "" : override.key.substr(0, dot);
    const std::string name = dot == std::string::npos ? "" : override.key.substr(dot + 1);
    const bool is_node = table == kNodeSection || table.starts_with("node[");
    const std::string_view section = is_node ? kNodeSection : std::string_view(table);
    const auto key = std::ranges::find_if(config_keys(), [&](const ConfigKey& candidate) {
      return candidate.section == section && candidate.name == name;
    });
    overridden_[override.key] = override.source;
    if (key == config_keys().end()) return unknown_override(override);
    toml::table parsed;
    try {
      parsed = toml::parse("value = " + toml_text(*key, override.value), override.source);
    } catch (const toml::parse_error&) {
      return add_error({}, override.key, expected_text(*key), quote_toml(override.value));
    }
    const toml::node& value = *parsed.get("value");
    if (parsed.size() != 1) {
      return add_error({}, override.key, expected_text(*key), quote_toml(override.value));
    }
    if (is_node) return apply_to_nodes(override, table, name, value, root);
    if (!root.contains(table)) root.insert(table, toml::table());
    // If the file has another type than a table there, parse_root reports it.
    if (auto* section_table = root.get_as<toml::table>(table)) {
      value.visit([&](const auto& typed) { section_table->insert_or_assign(name, typed); });
    }
  }

  /// Puts a value into the tables of all nodes, or of one.
  void apply_to_nodes(const ConfigOverride& override, const std::string& table,
                      const std::string& name, const toml::node& value, toml::table& root) {
    CHECK(!table.empty() && !name.empty());
    if (!root.contains(kNodeSection)) {
      const int64_t count = root.at_path("nodes.count").value_or(int64_t{node_count_});
      if (count < 1 || count > kMaxNodes) return;  // parse_root reports it
      root.erase(kNodesSection);
      toml::array nodes;
      for (int64_t i = 0; i < count; ++i) nodes.push_back(toml::table());
      root.insert(kNodeSection, std::move(nodes));
    }
    auto* nodes = root.get_as<toml::array>(kNodeSection);
    if (nodes == nullptr) return;  // parse_root reports it
    bool is_found = false;
    for (size_t i = 0; i < nodes->size(); ++i) {
      const std::string full = "node[" + std::to_string(i) + "]";
      auto* node = (*nodes)[i].as_table();
      if (node == nullptr || (table != kNodeSection && table != full)) continue;
      is_found = true;
      overridden_[full + "." + name] = override.source;
      value.visit([&](const auto& typed) { node->insert_or_assign(name, typed); });
    }
    if (!is_found && !nodes->empty()) {  // parse_root reports an empty array
      add_error({}, override.key, "a node from 0 to " + std::to_string(nodes->size() - 1), table);
    }
  }

  /// Returns the value as TOML. A text may be given without quotes.
  static std::string toml_text(const ConfigKey& key, const std::string& value) {
    const bool has_own_syntax = key.kind == KeyKind::boolean || key.kind == KeyKind::integer ||
                                key.kind == KeyKind::paths || key.kind == KeyKind::integers;
    const bool is_quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'');
    return has_own_syntax || is_quoted ? value : quote_toml(value);
  }

  void unknown_override(const ConfigOverride& override) {
    std::vector<std::string> names;
    for (const ConfigKey& key : config_keys()) names.push_back(key.full_name());
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string near(nearest_word(override.key, candidates));
    add_error({}, override.key, "a key of the config, as section.key", "an unknown name",
              near.empty() ? "" : "did you mean " + near + "?");
  }

  void parse_root(const toml::table& root) {
    for (const auto& [name, value] : root) {
      if (name == kNodeSection) {
        parse_node_tables(value);
      } else if (!is_section(name)) {
        unknown(name, "");
      } else if (const auto* table = value.as_table()) {
        parse_table(*table, name.str(), name.str() == kNodesSection ? "nodes" : "", nullptr);
      } else {
        add_error(value.source().begin, std::string(name), "a table", describe(value),
                  "write [" + std::string(name) + "]");
      }
    }
    if (count_position_ && root.contains(kNodeSection)) {
      add_error(*count_position_, "nodes.count", "either [nodes] count or [[node]] tables", "both",
                "");
    } else if (!root.contains(kNodeSection)) {
      CHECK(node_count_ >= 1 && node_count_ <= kMaxNodes);
      config_.nodes.assign(node_count_, NodeConfig{});
    }
    resolve_defaults(config_, machine_);
    check_config(config_, machine_, [this](auto key, auto expected, auto got, auto hint) {
      // Skips keys that have an error already: their values were replaced by the defaults.
      if (std::ranges::find(errors_, key, &ConfigError::key) != errors_.end()) return;
      const auto position = positions_.find(key);
      add_error(position == positions_.end() ? Position{} : position->second, std::move(key),
                std::move(expected), std::move(got), std::move(hint));
    });
  }

  void parse_node_tables(const toml::node& value) {
    const auto* tables = value.as_array();
    if (tables == nullptr || !std::ranges::all_of(*tables, &toml::node::is_table)) {
      add_error(value.source().begin, "node", "[[node]] tables", describe(value),
                "write [[node]] once for each node");
      return;
    }
    if (tables->empty() || std::ssize(*tables) > kMaxNodes) {
      add_error(value.source().begin, "node", "1 to " + std::to_string(kMaxNodes) + " tables",
                std::to_string(tables->size()));
      return;
    }
    config_.nodes.assign(tables->size(), NodeConfig{});
    for (size_t index = 0; index < tables->size(); ++index) {
      parse_table(*(*tables)[index].as_table(), kNodeSection, "node[" + std::to_string(index) + "]",
                  &config_.nodes[index]);
    }
  }

  /// Reads a table. `prefix` precedes the keys in messages and origins. Empty: the section's name.
  void parse_table(const toml::table& table, std::string_view section, std::string prefix,
                   NodeConfig* node) {
    CHECK(is_section(section));
    CHECK((node != nullptr) == (section == kNodeSection));
    if (prefix.empty()) prefix = section;
    NodeConfig unused_node;
    const ConfigTarget target{config_, node == nullptr ? unused_node : *node, node_count_};
    for (const auto& [name, value] : table) {
      const auto key = std::ranges::find_if(config_keys(), [&](const ConfigKey& candidate) {
        return candidate.section == section && candidate.name == name.str();
      });
      if (key == config_keys().end()) {
        unknown(name, prefix);
        continue;
      }
      const std::string full_name = prefix + "." + std::string(name);
      const Position at = value.source().begin;
      const bool is_new = positions_.emplace(full_name, at).second;
      CHECK(is_new);  // the TOML parser rejects repeated keys
      const auto source = overridden_.find(full_name);
      config_.origins.emplace(full_name, source == overridden_.end()
                                             ? file_ + ":" + std::to_string(at.line)
                                             : source->second);
      if (section == kNodesSection) count_position_ = at;
      read_value(*key, full_name, value, key->field(target));
    }
  }

  void read_value(const ConfigKey& key, const std::string& name, const toml::node& value,
                  const ConfigField& field) {
    std::set<Value> seen;
    if (key.kind != KeyKind::paths && key.kind != KeyKind::integers) {
      return read_entry(key, name, value, field, seen);
    }
    const auto* list = value.as_array();
    if (list == nullptr) {
      add_error(value.source().begin, name, expected_text(key), describe(value));
    } else if (std::ssize(*list) > kMaxListEntries) {
      add_error(value.source().begin, name,
                "a list of at most " + std::to_string(kMaxListEntries) + " entries",
                std::to_string(list->size()) + " entries");
    } else {
      for (const toml::node& entry : *list) read_entry(key, name, entry, field, seen);
    }
  }

  /// Reads a single value, or one entry of a list. `seen`: the earlier entries of the list.
  void read_entry(const ConfigKey& key, const std::string& name, const toml::node& node,
                  const ConfigField& field, std::set<Value>& seen) {
    std::string hint;
    const std::optional<Value> value = value_of(key, node, hint);
    const bool is_new = value && seen.insert(*value).second;
    if (is_new) return store(key, field, *value);
    if (value) hint = "it is in the list twice";
    add_error(node.source().begin, name, expected_text(key), describe(node), std::move(hint));
  }

  /// Returns the value of `node`, or nothing if the key does not allow it. May then set `hint`.
  std::optional<Value> value_of(const ConfigKey& key, const toml::node& node,
                                std::string& hint) const {
    std::optional<int64_t> number;
    const auto* text = node.as_string();
    switch (key.kind) {
      case KeyKind::boolean:
        if (const auto* boolean = node.as_boolean()) return boolean->get() ? 1 : 0;
        return std::nullopt;
      case KeyKind::integer:
      case KeyKind::integers:
        if (const auto* integer = node.as_integer()) number = integer->get();
        break;
      case KeyKind::size:
        if (text != nullptr) number = parse_size(text->get());
        if (!number) hint = "sizes are written \"512MiB\" (B, KiB, MiB, GiB, TiB)";
        break;
      case KeyKind::duration:
        if (text != nullptr) number = parse_duration_us(text->get());
        if (!number) hint = "times are written \"10ms\" (us, ms, s, min, h)";
        break;
      case KeyKind::choice: {
        CHECK(!key.choices.empty());
        if (text == nullptr) return std::nullopt;
        const auto choice = std::ranges::find(key.choices, text->get());
        if (choice != key.choices.end()) return choice - key.choices.begin();
        const std::string_view near = nearest_word(text->get(), key.choices);
        if (!near.empty()) hint = "did you mean " + quote_toml(near) + "?";
        return std::nullopt;
      }
      case KeyKind::name:
      case KeyKind::path:
      case KeyKind::optional_path:
      case KeyKind::command:
      case KeyKind::paths:
      case KeyKind::address:
      case KeyKind::endpoint:
        return text != nullptr ? valid_text(key, text->get()) : std::nullopt;
    }
    CHECK(!number || hint.empty());
    return number && in_range(key, *number) ? std::optional<Value>(*number) : std::nullopt;
  }

  /// Returns the value of a text key, or nothing if it is not allowed. Makes paths absolute.
  std::optional<Value> valid_text(const ConfigKey& key, std::string text) const {
    if (key.kind == KeyKind::address) {
      return is_address(text) ? std::optional<Value>(text) : std::nullopt;
    }
    CHECK(key.min >= 1);
    const bool may_be_empty = key.kind == KeyKind::optional_path || key.kind == KeyKind::command;
    if (text.empty() && may_be_empty) return text;
    if (std::ssize(text) < key.min) return std::nullopt;
    const bool is_path = key.kind == KeyKind::path || key.kind == KeyKind::paths ||
                         key.kind == KeyKind::optional_path;
    if (is_path || key.kind == KeyKind::command) {
      if (has_control_character(text)) return std::nullopt;
    }
    if (is_path) text = absolute_path(text, base_);
    if (std::ssize(text) > key.max) return std::nullopt;
    if (key.kind == KeyKind::name && !is_name(text)) return std::nullopt;
    if (key.kind == KeyKind::endpoint && !is_endpoint(text)) return std::nullopt;
    return text;
  }

  static bool is_section(std::string_view name) {
    return std::ranges::any_of(config_keys(),
                               [&](const ConfigKey& key) { return key.section == name; });
  }

  /// Reports an unknown key or section. `prefix` is empty for sections.
  void unknown(const toml::key& name, const std::string& prefix) {
    const std::string_view section =
        prefix.starts_with("node[") ? kNodeSection : std::string_view(prefix);
    std::vector<std::string_view> candidates;
    std::string hint;
    for (const ConfigKey& key : config_keys()) {
      if (prefix.empty()) {
        candidates.push_back(key.section);
      } else if (key.section == section) {
        candidates.push_back(key.name);
      }
      if (key.name == name.str() && hint.empty()) {
        hint = "did you mean " + key.full_name() + "?";
      }
    }
    CHECK(!candidates.empty());
    const std::string_view near = nearest_word(name.str(), candidates);
    if (!near.empty()) hint = "did you mean " + std::string(near) + "?";
    constexpr size_t kMaxShownBytes = 80;
    std::string shown(name.str().substr(0, kMaxShownBytes));
    const std::string full = prefix.empty() ? shown : prefix + "." + shown;
    add_error(
        name.source().begin, full,
        prefix.empty() ? "a section of the config" : "a key of [" + std::string(section) + "]",
        "an unknown name", std::move(hint));
  }

  std::string file_;
  std::string base_;  // base of relative paths
  const Machine& machine_;
  const std::span<const ConfigOverride> overrides_;
  std::map<std::string, std::string> overridden_;  // key -> source of its override
  Config config_;
  uint32_t node_count_ = static_cast<uint32_t>(Config{}.nodes.size());
  std::optional<Position> count_position_;
  std::map<std::string, Position> positions_;
  std::vector<ConfigError> errors_;
};

std::vector<ConfigError> file_error(const std::string& path, std::string expected,
                                    std::string got) {
  return {ConfigError{path, 0, 0, "", std::move(expected), std::move(got), ""}};
}

}  // namespace

std::expected<Config, std::vector<ConfigError>> load_config(
    const std::string& path, const Machine& machine, std::span<const ConfigOverride> overrides) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return std::unexpected(file_error(path, "a readable file", "a folder"));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(static_cast<size_t>(kMaxFileBytes) + 1);
    file.read(text.data(), std::ssize(text));
    CHECK(file.gcount() >= 0 && file.gcount() <= kMaxFileBytes + 1);
    text.resize(static_cast<size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    const int error_number = errno;
    std::string got = std::strerror(error_number);
    if (is_refusal(error_number)) got += " (" + refusal_text(std::filesystem::absolute(path)) + ")";
    return std::unexpected(file_error(path, "a readable file", std::move(got)));
  }
  if (std::ssize(text) > kMaxFileBytes) {
    return std::unexpected(
        file_error(path, "a file of at most " + format_size(kMaxFileBytes), "a larger one"));
  }
  return parse_config(text, path, machine, overrides);
}

std::expected<Config, std::vector<ConfigError>> parse_config(
    std::string_view text, std::string file_name, const Machine& machine,
    std::span<const ConfigOverride> overrides) {
  return Parser(std::move(file_name), machine, overrides).parse(text);
}

Config default_config(const Machine& machine) {
  Config config;
  resolve_defaults(config, machine);
  return config;
}

}  // namespace atolldb
