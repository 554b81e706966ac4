#include "engine/log/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "shared/base/take_text.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
std::string to_string(const LogFileName& name) {
  return fmt::format("log_{}_{}_{:06}.atlog", name.incarnation, name.logger, name.ordinal);
}

std::optional<LogFileName> parse_log_file_name(std::string_view name) {
  std::string_view rest = name;
  LogFileName parsed;
  if (!take_text(rest, "log_") || !take_number(rest, parsed.incarnation) || !take_text(rest, "_") ||
      !take_number(rest, parsed.logger) || !take_text(rest, "_") ||
      !take_number(rest, parsed.ordinal)) {
    return std::nullopt;
  }
  // Rejects a suffix, and other leading zeros than those that to_string writes.
  if (to_string(parsed) != name) return std::nullopt;
  return parsed;
}

std::string node_directory_name(uint32_t node) { return fmt::format("node{}", node); }

std::optional<uint32_t> parse_node_directory_name(std::string_view name) {
  std::string_view rest = name;
  uint32_t node = 0;
  if (!take_text(rest, "node") || !take_number(rest, node)) return std::nullopt;
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
  if (!take_text(rest, "ddl_") || !take_number(rest, ordinal)) return std::nullopt;
  if (ddl_file_name(ordinal) != name) return std::nullopt;
  return ordinal;
}

std::string path_of(const LogFilePlace& place) {
  return path_in(node_directory(place.directory, place.node), to_string(place.name));
}

Result<std::optional<LogFileBegin>> begin_of(FileSystem& file_system, const LogFilePlace& place) {
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(path_of(place)));
  IoBuffer buffer(sizeof(LogBlock));  // aligned, so that the read bypasses the page cache
  ATOLL_ASSIGN(const uint64_t count, file->read(0, buffer.bytes()));
  const auto* block = reinterpret_cast<const LogBlock*>(buffer.bytes().data());
  const LogBlockHeader& header = block->header;
  LogFileHeader content;
  if (count < sizeof(LogBlock) || header.magic != kLogBlockMagic ||
      header.version != kLogFormatVersion || header.type != LogBlockType::file_header ||
      header.length != sizeof content || header.crc != crc_of(*block)) {
    return std::nullopt;
  }
  if (header.incarnation != place.name.incarnation || header.node != place.node ||
      header.logger != place.name.logger || header.file_ordinal != place.name.ordinal) {
    return std::nullopt;
  }
  std::memcpy(&content, block->payload, sizeof content);
  LogFileBegin begin = {{}, header.epoch, header.last_epoch_before};
  std::ranges::copy(content.cluster_uuid, begin.cluster_uuid.begin());
  return begin;
}

Result<std::optional<ClusterUuid>> owner_of(FileSystem& file_system, const LogFilePlace& place) {
  ATOLL_ASSIGN(auto begin, begin_of(file_system, place));
  if (!begin) return std::nullopt;
  return begin->cluster_uuid;
}

Result<bool> is_foreign(FileSystem& file_system, const LogFilePlace& place,
                        const ClusterUuid& own) {
  ATOLL_ASSIGN(auto owner, owner_of(file_system, place));
  return owner.has_value() && *owner != own;
}

Result<void> for_each_node_folder(
    FileSystem& file_system, const std::string& directory,
    const std::function<Result<void>(uint32_t node, const std::string& path)>& visit) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return {};
  ATOLL_ASSIGN(const auto names, file_system.list(directory));
  for (const std::string& name : names) {
    const std::optional<uint32_t> node = parse_node_directory_name(name);
    if (!node) continue;
    ATOLL_TRY(visit(*node, path_in(directory, name)));
  }
  return {};
}

Result<std::vector<LogFilePlace>> log_files_in(FileSystem& file_system,
                                               const std::set<std::string>& directories) {
  std::vector<LogFilePlace> files;
  for (const std::string& directory : directories) {
    const auto add = [&](uint32_t node, const std::string& path) -> Result<void> {
      ATOLL_ASSIGN(const auto names, file_system.list(path));
      for (const std::string& name : names) {
        const std::optional<LogFileName> parsed = parse_log_file_name(name);
        if (parsed) files.push_back({directory, node, *parsed});
      }
      return {};
    };
    ATOLL_TRY(for_each_node_folder(file_system, directory, add));
  }
  std::ranges::sort(files, {}, [](const LogFilePlace& file) {
    return std::tuple(file.name.incarnation, file.node, file.name.logger, file.name.ordinal,
                      std::string_view(file.directory));
  });
  return files;
}

}  // namespace atolldb
