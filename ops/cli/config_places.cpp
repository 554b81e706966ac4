#include "ops/cli/config_places.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "coordinator/durability/disk_room.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/program_folder.h"
#include "shared/base/path_errors.h"
#include "shared/file/file_system_wrappers.h"
#include "shared/process/shell_command.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

/// A folder that a key of the config names.
struct ConfigPlace {
  std::string key;
  std::string path;
  bool must_exist = false;
};

/// A cluster without a log makes no folders for data.
std::vector<ConfigPlace> data_places(const Config& config) {
  if (config.durability.mode != DurabilityMode::durable) return {};
  std::vector<ConfigPlace> places = {{"cluster.data_dir", config.cluster.data_dir}};
  for (size_t node = 0; node < config.nodes.size(); ++node) {
    for (const std::string& directory : config.nodes[node].directories) {
      places.push_back({fmt::format("node[{}].directories", node), directory});
    }
  }
  return places;
}

std::vector<ConfigPlace> all_places(const Config& config) {
  std::vector<ConfigPlace> places = {{"cluster.run_dir", config.cluster.run_dir},
                                     {"cluster.log_dir", config.cluster.log_dir}};
  for (ConfigPlace& place : data_places(config)) places.push_back(std::move(place));
  if (!config.archive.directory.empty()) {
    places.push_back({"archive.directory", config.archive.directory, true});
  }
  return places;
}

/// Returns the folder, or the nearest one above it that exists.
std::string nearest_existing(const std::string& path) {
  fs::path place = path;
  struct stat info{};
  while (stat(place.c_str(), &info) != 0 && errno == ENOENT && place.has_parent_path() &&
         place != place.parent_path()) {
    place = place.parent_path();
  }
  return place.string();
}

/// Returns why the folder cannot be used, or an empty text.
std::string defect_of(const ConfigPlace& place) {
  const std::string existing = nearest_existing(place.path);
  const bool exists = existing == place.path;
  const char* what = exists ? "cannot be used" : "cannot be made";
  struct stat info{};
  if (stat(existing.c_str(), &info) != 0) {
    return path_error(place.path, what, errno, "change " + place.key + " in the config").message;
  }
  if (!S_ISDIR(info.st_mode)) {
    return fmt::format("{}: {}: {} is no folder: change {}", place.path, what, existing, place.key);
  }
  if (place.must_exist && !exists) {
    return fmt::format(
        "{}: does not exist, and is never made, so that a device that is not mounted "
        "is noticed: make it, or mount its device",
        place.path);
  }
  if (access(existing.c_str(), W_OK | X_OK) != 0) {
    return path_error(place.path, what, errno, "change " + place.key + " in the config").message;
  }
  return "";
}

/// Returns what is unusual about the file system of the data, or an empty text.
std::string file_system_advice(const Config& config, const ConfigPlace& place) {
  struct statfs info{};
  if (statfs(nearest_existing(place.path).c_str(), &info) != 0) return "";
  switch (static_cast<unsigned long>(info.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return place.path +
             ": is in memory (tmpfs): its data are lost when the machine stops: use a "
             "file system on a device";
    case NFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
      return place.path +
             ": is on another machine: commits wait for the network, and locks may not "
             "hold: use a local device";
    case OVERLAYFS_SUPER_MAGIC:
      return place.path +
             ": is the writable layer of a container (overlayfs): its data are lost "
             "with the container: mount a volume there";
    default:
      break;
  }
  struct statx extended{};
  const bool is_known = statx(AT_FDCWD, nearest_existing(place.path).c_str(), 0, 0, &extended) == 0;
  const bool is_dax = is_known && (extended.stx_attributes & STATX_ATTR_DAX) != 0;
  if (config.durability.backend == FileBackend::pmem && !is_dax) {
    return place.path +
           ": durability.backend is \"pmem\", but this is no persistent memory (DAX): "
           "syncs take system calls: mount it with -o dax, or use \"posix\"";
  }
  return "";
}

/// Checks the room for the files that a new cluster makes at its start.
void check_room(const Config& config, std::vector<ConfigFinding>& findings) {
  if (config.durability.mode != DurabilityMode::durable) return;
  for (const LogFileSystem& place : log_file_systems(config)) {
    const Result<FileSystemRoom> room = file_system_room(place.directory);
    if (!room) {
      findings.push_back({true, "cluster.data_dir", room.error().message});
      continue;
    }
    // A cluster that exists has some of these files already.
    std::error_code none;
    const bool is_new = fs::is_empty(place.directory, none) || none;
    const uint64_t logs = place.loggers * config.durability.log_file_size;
    const uint64_t ballast = logs * config.durability.ballast_files;
    const uint64_t reserve = disk_reserve(config, place.directory);
    const std::string free = format_bytes(room->free_bytes);
    if (is_new && room->free_bytes < logs + ballast) {
      findings.push_back(
          {true, "durability.log_file_size",
           fmt::format(
               "{}: {} are free, but the first log files of {} loggers ({}) and the ballast "
               "({}) do not fit: free disk space, or lower durability.log_file_size",
               place.directory, free, place.loggers, format_bytes(logs), format_bytes(ballast))});
    } else if (room->free_bytes < reserve) {
      findings.push_back(
          {false, "gleaner.disk_reserve",
           fmt::format("{}: {} are free, and snapshots leave {} free: no snapshot can "
                       "be taken: free disk space, or set gleaner.disk_reserve",
                       place.directory, free, format_bytes(reserve))});
    }
  }
}

}  // namespace

std::vector<ConfigFinding> check_places(const Config& config) {
  std::vector<ConfigFinding> findings;
  for (const ConfigPlace& place : all_places(config)) {
    if (const std::string defect = defect_of(place); !defect.empty()) {
      findings.push_back({true, place.key, defect});
    }
  }
  if (findings.empty()) {  // otherwise the same folder might be reported twice
    const auto checked = check_parents(config.cluster.run_dir, "cluster.run_dir");
    if (!checked) findings.push_back({true, "cluster.run_dir", checked.error().message});
  }
  for (const ConfigPlace& place : data_places(config)) {
    if (const std::string advice = file_system_advice(config, place); !advice.empty()) {
      findings.push_back({false, place.key, advice});
    }
  }
  check_room(config, findings);
  return findings;
}

std::vector<ConfigFinding> check_libraries(const Config& config) {
  constexpr const char* kKey = "procedures.libraries";
  std::vector<ConfigFinding> findings;
  std::string command;
  for (const std::string& library : config.procedures.libraries) {
    struct stat info{};
    if (stat(library.c_str(), &info) != 0) {
      findings.push_back(
          {true, kKey,
           path_error(library, "cannot be read", errno, "build it, or change the path").message});
    } else if (!S_ISREG(info.st_mode)) {
      findings.push_back({true, kKey, library + ": is no file: name the shared library"});
    }
    command += " " + quote_for_shell(library);
  }
  if (!findings.empty() || command.empty()) return findings;
  // In a process of its own: a library runs code when it is loaded, and needs the node's symbols.
  constexpr std::chrono::milliseconds kPatience{60'000};
  const std::string node = program_folder() + "/atoll-node";
  const Result<void> loaded =
      run_shell_command(quote_for_shell(node) + " --check-libraries" + command, kPatience, {});
  if (!loaded) findings.push_back({true, kKey, loaded.error().message});
  return findings;
}

}  // namespace atolldb::cli
