#include "engine/log/log_files.h"

#include <fmt/format.h>

#include <charconv>

namespace atolldb {
namespace {

/// Removes a number from the front of `text`. Returns false if there is none, or it does not fit.
template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

}  // namespace

std::string to_string(const LogFileName& name) {
  return fmt::format("log_{}_{}_{:06}.atlog", name.incarnation, name.logger, name.ordinal);
}

std::optional<LogFileName> parse_log_file_name(std::string_view name) {
  std::string_view rest = name;
  LogFileName parsed;
  if (!take(rest, "log_") || !take_number(rest, parsed.incarnation) || !take(rest, "_") ||
      !take_number(rest, parsed.logger) || !take(rest, "_") || !take_number(rest, parsed.ordinal)) {
    return std::nullopt;
  }
  if (to_string(parsed) != name) return std::nullopt;  // other leading zeros, or more text
  return parsed;
}

std::string node_directory_name(uint32_t node) { return fmt::format("node{}", node); }

std::optional<uint32_t> parse_node_directory_name(std::string_view name) {
  std::string_view rest = name;
  uint32_t node = 0;
  if (!take(rest, "node") || !take_number(rest, node)) return std::nullopt;
  if (node_directory_name(node) != name) return std::nullopt;
  return node;
}

std::string node_directory(const std::string& directory, uint32_t node) {
  return path_in(directory, node_directory_name(node));
}

std::string coordinator_directory(const std::string& data_dir) {
  return path_in(data_dir, "coordinator");
}

std::string path_in(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}", directory, name);
}

std::string ddl_file_name(uint32_t ordinal) { return fmt::format("ddl_{:06}.atlog", ordinal); }

std::optional<uint32_t> parse_ddl_file_name(std::string_view name) {
  std::string_view rest = name;
  uint32_t ordinal = 0;
  if (!take(rest, "ddl_") || !take_number(rest, ordinal)) return std::nullopt;
  if (ddl_file_name(ordinal) != name) return std::nullopt;
  return ordinal;
}

}  // namespace atolldb
