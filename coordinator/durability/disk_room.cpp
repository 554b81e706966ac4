#include "coordinator/durability/disk_room.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system_wrappers.h"

namespace atolldb {
namespace {

/// Returns the device of the directory, or of its nearest ancestor that exists.
dev_t device_of(const std::string& directory) {
  std::filesystem::path place = directory;
  struct stat info{};
  while (stat(place.c_str(), &info) != 0 && place.has_relative_path()) place = place.parent_path();
  return info.st_dev;
}

Result<bool> remove_file(FileSystem& file_system, const std::string& directory) {
  const std::string path = ballast_path(directory);
  auto exists = file_system.exists(path);
  if (!exists || !*exists) return exists;
  ATOLL_TRY(file_system.remove(path));
  ATOLL_TRY(file_system.sync_directory(directory));
  return true;
}

uint64_t reserved_log_bytes(const Config& config, const LogFileSystem& place) {
  CHECK(place.loggers > 0);
  return kReservedLogFiles * place.loggers * config.durability.log_file_size;
}

uint64_t ballast_bytes(const Config& config, const LogFileSystem& place) {
  return config.durability.ballast_files * place.loggers * config.durability.log_file_size;
}

}  // namespace

std::vector<LogFileSystem> log_file_systems(const Config& config) {
  std::vector<LogFileSystem> systems;
  std::map<dev_t, size_t> known;
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    for (uint32_t logger = 0; logger < config.nodes[node].loggers; ++logger) {
      const std::string directory = log_directory(config, node, logger);
      const auto [found, is_new] = known.try_emplace(device_of(directory), systems.size());
      if (is_new) systems.push_back({directory, 0});
      ++systems[found->second].loggers;
    }
  }
  return systems;
}

uint64_t disk_reserve(const Config& config, const std::string& directory) {
  if (config.gleaner.disk_reserve.get() != 0) return config.gleaner.disk_reserve;
  const dev_t device = device_of(directory);
  const std::vector<LogFileSystem> places = log_file_systems(config);
  const auto here = std::ranges::find_if(
      places, [&](const LogFileSystem& place) { return device_of(place.directory) == device; });
  return here == places.end() ? kMinDiskReserve
                              : std::max(kMinDiskReserve, reserved_log_bytes(config, *here));
}

std::vector<std::string> low_disk_reserves(const Config& config) {
  std::vector<std::string> warnings;
  const uint64_t reserve = config.gleaner.disk_reserve;
  if (reserve == 0) return warnings;
  for (const LogFileSystem& place : log_file_systems(config)) {
    const uint64_t wanted = reserved_log_bytes(config, place);
    if (reserve >= wanted) continue;
    warnings.push_back(
        fmt::format("{}: gleaner.disk_reserve leaves {} bytes free, but {} log files of each of "
                    "its {} loggers have {}: snapshots or checkpoints may take the room that the "
                    "log needs: raise "
                    "gleaner.disk_reserve, or remove it from the config",
                    place.directory, reserve, kReservedLogFiles, place.loggers, wanted));
  }
  return warnings;
}

std::string ballast_path(const std::string& directory) {
  return path_in(directory, "ballast.atoll");
}

Result<uint32_t> Ballast::release(const std::set<std::string>& directories) {
  uint32_t count = 0;
  for (const std::string& directory : directories) {
    ATOLL_ASSIGN(auto removed, remove_file(file_system_, directory));
    if (removed) ++count;
  }
  // Other processes need the room, and their file systems do not know of these removals.
  file_system_.finish_removals();
  return count;
}

Result<void> Ballast::rebuild(const std::set<std::string>& directories) {
  std::vector<LogFileSystem> places = log_file_systems(config_);
  std::erase_if(places,
                [&](const LogFileSystem& place) { return ballast_bytes(config_, place) == 0; });
  for (const std::string& directory : directories) {
    if (std::ranges::find(places, directory, &LogFileSystem::directory) != places.end()) continue;
    ATOLL_TRY(remove_file(file_system_, directory));
  }
  std::optional<Error> error;
  for (const LogFileSystem& place : places) {
    auto built = rebuild_at(place);
    if (!built && !error) error = built.error();
  }
  if (error) return std::unexpected(*error);
  return {};
}

Result<void> Ballast::rebuild_at(const LogFileSystem& place) {
  const uint64_t bytes = ballast_bytes(config_, place);
  CHECK(bytes != 0);
  const std::string path = ballast_path(place.directory);
  ATOLL_ASSIGN(auto exists, file_system_.exists(path));
  if (exists) {
    ATOLL_ASSIGN(auto file, file_system_.open_for_reading(path));
    ATOLL_ASSIGN(auto size, file->size());
    if (size == bytes) return {};
    ATOLL_TRY(remove_file(file_system_, place.directory));
  }
  ATOLL_ASSIGN(const uint64_t free, free_bytes_at(place.directory));
  const uint64_t reserve = disk_reserve(config_, place.directory);
  if (free < bytes || free - bytes < reserve) {
    return make_error(
        ExitCode::disk_full,
        fmt::format("{}: no room for {} bytes beside the reserve of {}: {} are free: free disk "
                    "space, or lower durability.ballast_files",
                    path, bytes, reserve, free));
  }
  ATOLL_ASSIGN(auto file, file_system_.create(path, bytes));
  ATOLL_TRY(file->sync());
  return file_system_.sync_directory(place.directory);
}

}  // namespace atolldb
