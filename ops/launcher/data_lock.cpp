#include "ops/launcher/data_lock.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "ops/launcher/directory_owner.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/file/posix_file_system.h"

namespace atolldb {
namespace {

constexpr const char* kDataKey = "cluster.data_dir";

/// Identity of a directory, independent of links to it.
struct Place {
  std::string directory;
  std::string key;  // for errors
  dev_t device = 0;
  ino_t inode = 0;
};

bool is_same(const Place& a, const Place& b) { return a.device == b.device && a.inode == b.inode; }

std::string key_of(const std::string& node_directory) {
  return "`directories` of [[node]] (" + node_directory + ")";
}

/// Returns the identity of the directory, or nothing if it does not exist.
std::optional<Place> find_place(const std::string& directory, const std::string& key) {
  struct stat info{};
  if (stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return std::nullopt;
  return Place{directory, key, info.st_dev, info.st_ino};
}

Result<Place> make_place(FileSystem& file_system, const std::string& directory,
                         const std::string& key) {
  const std::string way_out = "change " + key + " in the config";
  if (auto made = file_system.make_directory(directory); !made) {
    const bool is_full = made.error().code == ExitCode::disk_full;
    return make_error(is_full ? ExitCode::disk_full : ExitCode::failed,
                      directory + ": cannot be made: " + made.error().message + ": " + way_out);
  }
  auto place = find_place(directory, key);
  if (!place) return std::unexpected(path_error(directory, "cannot be used", errno, way_out));
  return *std::move(place);
}

/// Takes the locks of a cluster's directories one after the other.
class DataLocker {
 public:
  /// `run_dir`: run folder of the cluster, written into the locks for their readers; empty: none.
  DataLocker(FileSystem& file_system, const LocateDirectory& locate, std::string cluster,
             std::string run_dir)
      : file_system_(file_system), locate_(locate), run_dir_(std::move(run_dir)) {
    directories_.cluster = std::move(cluster);
  }
  ~DataLocker() {
    for (ProcessLock& lock : locks_) lock.forget_processes();
  }
  DataLocker(const DataLocker&) = delete;
  DataLocker& operator=(const DataLocker&) = delete;

  /// Called first, because files in data_dir name other directories. They are read only after
  /// data_dir was checked (R47).
  Result<void> lock_data_dir(Place place) {
    directories_.data_dir = place.directory;
    ATOLL_TRY(lock(std::move(place)));
    return check_data_directory(file_system_, directories_.data_dir, locate_);
  }
  Result<void> lock_configured(Place place) {
    if (is_known(place)) return {};
    directories_.configured.push_back(place.directory);
    return lock(std::move(place));
  }
  /// Locks the other directories that the data name (R50). A missing directory is no error here,
  /// because recovery checks whether it is needed.
  Result<void> lock_left() {
    ATOLL_ASSIGN(auto named, named_directories(file_system_, directories_.data_dir));
    directories_.named = std::move(named);
    for (const std::string& directory : directories_.named.directories) {
      auto place = find_place(directory, "`directories` of [[node]]");
      if (!place || is_known(*place)) continue;
      directories_.left.push_back(directory);
      ATOLL_TRY(lock(*std::move(place)));
    }
    return {};
  }
  const DataDirectories& directories() const { return directories_; }
  DataLock take() { return DataLock(std::exchange(locks_, {})); }

 private:
  bool is_known(const Place& place) const {
    return std::ranges::any_of(places_, [&](const Place& other) { return is_same(other, place); });
  }
  Result<void> lock(Place place) {
    ATOLL_ASSIGN(auto lock,
                 ProcessLock::acquire_directory(place.directory, directories_.cluster, place.key));
    if (!run_dir_.empty()) lock.set_run_dir(run_dir_);
    locks_.push_back(std::move(lock));
    places_.push_back(std::move(place));
    return {};
  }

  FileSystem& file_system_;
  const LocateDirectory& locate_;
  std::string run_dir_;
  DataDirectories directories_;
  std::vector<Place> places_;
  std::vector<ProcessLock> locks_;
};

}  // namespace

std::vector<int> DataLock::fds() const {
  std::vector<int> fds;
  for (const ProcessLock& lock : locks_) {
    fds.push_back(lock.fd());
    if (lock.directory_fd().is_open()) fds.push_back(lock.directory_fd().get());
  }
  return fds;
}

Result<void> DataLock::check_in_place() const {
  for (const ProcessLock& lock : locks_) {
    if (lock.is_in_place()) continue;
    return make_error(ExitCode::failed,
                      lock.path() +
                          ": is not the file that this start has locked: a volume was mounted "
                          "there, or the file or its directory was removed or replaced: nothing "
                          "was recovered: start again when the directory no longer changes");
  }
  return {};
}

std::vector<std::string> DataLock::warnings() const {
  std::vector<std::string> warnings;
  for (const ProcessLock& lock : locks_) {
    if (lock.directory_fd().is_open()) continue;
    warnings.push_back(lock.path() +
                       ": is the only lock of its directory, because the file system cannot lock "
                       "directories: do not remove this file while the cluster runs");
  }
  return warnings;
}

Result<void> DataLock::write_processes(const std::vector<ProcessId>& children) {
  for (ProcessLock& lock : locks_) {
    ATOLL_TRY(lock.write_processes(children));
  }
  return {};
}

void DataLock::forget_processes() {
  for (ProcessLock& lock : locks_) lock.forget_processes();
}

Result<std::optional<DataLock>> lock_data(const Config& config) {
  // Uses the file system of the kernel. Directories, locks and owner files exist there with every
  // log backend.
  PosixFileSystem file_system;
  return lock_data(config, file_system);
}

Result<std::optional<DataLock>> lock_data(const Config& config, FileSystem& file_system,
                                          const LocateDirectory& locate) {
  if (config.durability.mode != DurabilityMode::durable) return std::nullopt;
  DataLocker locker(file_system, locate, config.cluster.name, config.cluster.run_dir);
  ATOLL_ASSIGN(auto data, make_place(file_system, config.cluster.data_dir, kDataKey));
  ATOLL_TRY(locker.lock_data_dir(std::move(data)));
  for (const std::string& directory : node_directories(config)) {
    ATOLL_ASSIGN(Place place, make_place(file_system, directory, key_of(directory)));
    ATOLL_TRY(locker.lock_configured(std::move(place)));
  }
  ATOLL_TRY(locker.lock_left());
  ATOLL_TRY(claim_directories(file_system, locker.directories(), locate));
  return locker.take();
}

Result<DataLock> lock_dead_data(const std::string& tool, const std::string& data_dir,
                                const std::vector<std::string>& configured,
                                FileSystem& file_system) {
  const LocateDirectory locate = locate_directory;
  DataLocker locker(file_system, locate, tool, "");
  auto data = find_place(data_dir, kDataKey);
  if (!data) return make_error(ExitCode::failed, data_dir + ": no such directory: choose another");
  ATOLL_TRY(locker.lock_data_dir(*std::move(data)));
  for (const std::string& directory : configured) {
    auto place = find_place(directory, key_of(directory));
    if (!place) continue;
    ATOLL_TRY(locker.lock_configured(*std::move(place)));
  }
  ATOLL_TRY(locker.lock_left());
  ATOLL_TRY(check_directories(file_system, locker.directories(), locate));
  return locker.take();
}

}  // namespace atolldb
