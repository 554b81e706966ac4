#include "engine/checkpoint/checkpoint_file.h"

#include <fmt/format.h>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/take_text.h"

namespace atolldb {
std::string to_string(const CheckpointFileName& name) {
  return fmt::format("checkpoint_{}_{}_{}.atcp", name.checkpoint, name.writer, name.number);
}

std::optional<CheckpointFileName> parse_checkpoint_file_name(std::string_view name) {
  std::string_view rest = name;
  CheckpointFileName parsed;
  const bool is_parsed = take_text(rest, "checkpoint_") && take_number(rest, parsed.checkpoint) &&
                         take_text(rest, "_") && take_number(rest, parsed.writer) &&
                         take_text(rest, "_") && take_number(rest, parsed.number);
  if (!is_parsed || to_string(parsed) != name) return std::nullopt;
  return parsed;
}

std::string checkpoint_file_path(const std::string& directory, uint32_t node,
                                 const CheckpointFileName& name) {
  CHECK(name.checkpoint != 0);
  return path_in(node_directory(directory, node), to_string(name));
}

}  // namespace atolldb
