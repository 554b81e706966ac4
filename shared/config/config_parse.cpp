#include <arpa/inet.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "shared/base/path_errors.h"
#include "shared/config/config.h"
#include "shared/config/config_check.h"
#include "shared/config/config_keys.h"
#include "shared/config/config_limits.h"
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

/// Only loopback addresses: others would need authentication, which does not exist yet.
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

void store_integer(const ConfigField& field, int64_t number) {
  std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
          *target = static_cast<T>(number);
        } else if constexpr (std::is_same_v<T, std::chrono::microseconds> ||
                             std::is_same_v<T, std::chrono::milliseconds>) {
          *target = std::chrono::duration_cast<T>(std::chrono::microseconds(number));
        }
      },
      field);
}

bool in_range(const ConfigKey& key, int64_t number) {
  return number >= key.min && number <= key.max && number % key.step == 0;
}

class Parser {
 public:
  Parser(std::string file, const Machine& machine) : file_(std::move(file)), machine_(machine) {
    std::error_code ignored;
    base_ = std::filesystem::absolute(file_, ignored).parent_path().string();
  }

  std::expected<Config, std::vector<ConfigError>> parse(std::string_view text) {
    try {
      parse_root(toml::parse(text, file_));
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
    return std::move(config_);
  }

 private:
  using Position = toml::source_position;

  void add_error(Position at, std::string key, std::string expected, std::string got,
                 std::string hint = "") {
    errors_.push_back({file_, at.line, at.column, std::move(key), std::move(expected),
                       std::move(got), std::move(hint)});
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
      config_.nodes.assign(node_count_, NodeConfig{});
    }
    resolve_defaults(config_);
    check_config(config_, machine_, [this](auto key, auto expected, auto got, auto hint) {
      // A value that is invalid by itself was replaced by the default. Do not report it twice.
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

  /// `prefix` precedes the key in messages and origins. Empty: the section's name.
  void parse_table(const toml::table& table, std::string_view section, std::string prefix,
                   NodeConfig* node) {
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
      positions_.emplace(full_name, at);
      config_.origins.emplace(full_name, file_ + ":" + std::to_string(at.line));
      if (section == kNodesSection) count_position_ = at;
      read_value(*key, full_name, value, key->field(target));
    }
  }

  void read_value(const ConfigKey& key, const std::string& name, const toml::node& value,
                  const ConfigField& field) {
    const auto wrong = [&](const toml::node& where, std::string hint = "") {
      add_error(where.source().begin, name, expected_text(key), describe(where), std::move(hint));
    };
    const auto* text = value.as_string();
    switch (key.kind) {
      case KeyKind::boolean:
        if (const auto* boolean = value.as_boolean()) {
          **std::get_if<bool*>(&field) = boolean->get();
        } else {
          wrong(value);
        }
        return;
      case KeyKind::integer:
        if (const auto* integer = value.as_integer(); integer && in_range(key, integer->get())) {
          store_integer(field, integer->get());
        } else {
          wrong(value);
        }
        return;
      case KeyKind::size:
      case KeyKind::duration:
        read_quantity(key, value, field, wrong);
        return;
      case KeyKind::choice:
        read_choice(key, value, field, wrong);
        return;
      case KeyKind::paths:
      case KeyKind::integers:
        read_list(key, name, value, field, wrong);
        return;
      case KeyKind::name:
      case KeyKind::path:
      case KeyKind::address:
      case KeyKind::endpoint:
        if (const auto valid = text ? valid_text(key, text->get()) : std::nullopt) {
          **std::get_if<std::string*>(&field) = *valid;
        } else {
          wrong(value);
        }
        return;
    }
  }

  void read_quantity(const ConfigKey& key, const toml::node& value, const ConfigField& field,
                     const auto& wrong) {
    const bool is_size = key.kind == KeyKind::size;
    std::optional<int64_t> number;
    if (const auto* text = value.as_string()) {
      number = is_size ? parse_size(text->get()) : parse_duration_us(text->get());
    }
    if (!number) {
      wrong(value, is_size ? "sizes are written \"512MiB\" (B, KiB, MiB, GiB, TiB)"
                           : "times are written \"10ms\" (us, ms, s, min, h)");
    } else if (!in_range(key, *number)) {
      wrong(value);
    } else {
      store_integer(field, *number);
    }
  }

  void read_choice(const ConfigKey& key, const toml::node& value, const ConfigField& field,
                   const auto& wrong) {
    const auto* text = value.as_string();
    if (text == nullptr) return wrong(value);
    const auto choice = std::ranges::find(key.choices, text->get());
    if (choice == key.choices.end()) {
      const std::string_view near = nearest_word(text->get(), key.choices);
      return wrong(value, near.empty() ? "" : "did you mean " + quote_toml(near) + "?");
    }
    if (auto* const* string = std::get_if<std::string*>(&field)) {
      **string = *choice;
    } else {
      store_integer(field, choice - key.choices.begin());
    }
  }

  void read_list(const ConfigKey& key, const std::string& name, const toml::node& value,
                 const ConfigField& field, const auto& wrong) {
    const auto* list = value.as_array();
    if (list == nullptr) return wrong(value);
    if (std::ssize(*list) > kMaxListEntries) {
      add_error(value.source().begin, name,
                "a list of at most " + std::to_string(kMaxListEntries) + " entries",
                std::to_string(list->size()) + " entries");
      return;
    }
    std::set<std::string> seen;
    for (const toml::node& entry : *list) {
      if (auto* const* integers = std::get_if<std::vector<int32_t>*>(&field)) {
        const auto* integer = entry.as_integer();
        if (integer == nullptr || !in_range(key, integer->get())) {
          wrong(entry);
        } else if (!seen.insert(std::to_string(integer->get())).second) {
          wrong(entry, "it is in the list twice");
        } else {
          (*integers)->push_back(static_cast<int32_t>(integer->get()));
        }
      } else {
        const auto* text = entry.as_string();
        const auto valid = text ? valid_text(key, text->get()) : std::nullopt;
        if (!valid) {
          wrong(entry);
        } else if (!seen.insert(*valid).second) {
          wrong(entry, "it is in the list twice");
        } else {
          (*std::get_if<std::vector<std::string>*>(&field))->push_back(*valid);
        }
      }
    }
  }

  /// Returns the text as stored, or nothing if it is not allowed.
  std::optional<std::string> valid_text(const ConfigKey& key, std::string text) const {
    if (key.kind == KeyKind::address) {
      return is_address(text) ? std::optional(text) : std::nullopt;
    }
    if (std::ssize(text) < key.min) return std::nullopt;
    if (key.kind == KeyKind::path || key.kind == KeyKind::paths) {
      if (has_control_character(text)) return std::nullopt;
      text = absolute_path(text, base_);
    }
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

std::expected<Config, std::vector<ConfigError>> load_config(const std::string& path,
                                                            const Machine& machine) {
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
  return parse_config(text, path, machine);
}

std::expected<Config, std::vector<ConfigError>> parse_config(std::string_view text,
                                                             std::string file_name,
                                                             const Machine& machine) {
  return Parser(std::move(file_name), machine).parse(text);
}

Config default_config() {
  Config config;
  resolve_defaults(config);
  return config;
}

}  // namespace atolldb
