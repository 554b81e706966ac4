#include "ops/launcher/data_lock.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "ops/launcher/directory_owner.h"
#include "shared/file/posix_file_system.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

constexpr const char* kDataKey = "cluster.data_dir";

/// What tells directories apart, whatever links lead to them.
struct Place {
  std::string directory;
  std::string key;  // for errors
  dev_t device = 0;
  ino_t inode = 0;
};

Result<Place> make_place(FileSystem& file_system, const std::string& directory,
                         const std::string& key) {
  const auto failure = [&](const std::string& why) {
    return make_error(ExitCode::failed, directory + ": cannot be made: " + why + ": change " + key +
                                            " in the config");
  };
  if (auto made = file_system.make_directory(directory); !made)
    return failure(made.error().message);
  struct stat info{};
  if (stat(directory.c_str(), &info) != 0) return failure(std::strerror(errno));
  return Place{directory, key, info.st_dev, info.st_ino};
}

/// data_dir first; each directory once.
Result<std::vector<Place>> make_places(const Config& config, FileSystem& file_system) {
  auto data = make_place(file_system, config.cluster.data_dir, kDataKey);
  if (!data) return std::unexpected(data.error());
  std::vector<Place> places = {*std::move(data)};
  for (const std::string& directory : node_directories(config)) {
    auto place =
        make_place(file_system, directory, "`directories` of [[node]] (" + directory + ")");
    if (!place) return std::unexpected(place.error());
    const bool is_known = std::ranges::any_of(places, [&](const Place& other) {
      return other.device == place->device && other.inode == place->inode;
    });
    if (!is_known) places.push_back(*std::move(place));
  }
  return places;
}

}  // namespace

std::vector<int> DataLock::fds() const {
  std::vector<int> fds;
  for (const ProcessLock& lock : locks_) fds.push_back(lock.fd());
  return fds;
}

Result<void> DataLock::write_processes(const std::vector<ProcessId>& children) {
  for (ProcessLock& lock : locks_) {
    if (auto written = lock.write_processes(children); !written) return written;
  }
  return {};
}

void DataLock::forget_processes() {
  for (ProcessLock& lock : locks_) lock.forget_processes();
}

Result<std::optional<DataLock>> lock_data(const Config& config) {
  // The directories, their locks and owners are the kernel's, whatever backend the logs have.
  PosixFileSystem file_system;
  return lock_data(config, file_system);
}

Result<std::optional<DataLock>> lock_data(const Config& config, FileSystem& file_system) {
  if (config.durability.mode != DurabilityMode::durable) return std::nullopt;
  const auto places = make_places(config, file_system);
  if (!places) return std::unexpected(places.error());
  std::vector<ProcessLock> locks;
  std::vector<std::string> log_directories;
  for (const Place& place : *places) {
    auto lock =
        ProcessLock::acquire(directory_lock_path(place.directory), config.cluster.name, place.key);
    if (!lock) {
      for (ProcessLock& held : locks) held.forget_processes();
      return std::unexpected(lock.error());
    }
    locks.push_back(*std::move(lock));
    if (&place != &places->front()) log_directories.push_back(place.directory);
  }
  DataLock lock(std::move(locks));
  const auto claimed =
      claim_directories(file_system, config.cluster.name, config.cluster.data_dir, log_directories);
  if (!claimed) {
    lock.forget_processes();
    return std::unexpected(claimed.error());
  }
  return lock;
}

}  // namespace atolldb
