#include "engine/checkpoint/checkpoint_file.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/log/log_files.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Removes `prefix` from the front of the text. Returns false if the text does not begin with it.
bool take_text(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <typename Number>
bool take_decimal(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string to_string(const CheckpointFileName& name) {
  return fmt::format("checkpoint_{}_{}_{}.atcp", name.checkpoint, name.writer, name.number);
}

std::optional<CheckpointFileName> parse_checkpoint_file_name(std::string_view name) {
  std::string_view rest = name;
  CheckpointFileName parsed;
  const bool is_parsed = take_text(rest, "checkpoint_") && take_decimal(rest, parsed.checkpoint) &&
                         take_text(rest, "_") && take_decimal(rest, parsed.writer) &&
                         take_text(rest, "_") && take_decimal(rest, parsed.number);
  if (!is_parsed || to_string(parsed) != name) return std::nullopt;
  return parsed;
}

std::string checkpoint_file_path(const std::string& directory, uint32_t node,
                                 const CheckpointFileName& name) {
  CHECK(name.checkpoint != 0);
  return path_in(node_directory(directory, node), to_string(name));
}

}  // namespace atolldb
