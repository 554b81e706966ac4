#include "ops/backup/backup_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ranges>
#include <utility>

#include "engine/log/log_files.h"
#include "ops/backup/backup_time.h"
#include "shared/base/check.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

constexpr mode_t kLockMode = 0600;

Result<ListedBackup> read_listed(FileSystem& file_system, const std::string& directory,
                                 const std::string& id) {
  ListedBackup listed;
  listed.id = id;
  auto manifest = read_manifest(file_system, backup_path(directory, id));
  if (manifest) {
    listed.manifest = *std::move(manifest);
  } else if (manifest.error().code == ExitCode::corruption) {
    listed.damage = manifest.error().message;
  } else {
    return std::unexpected(manifest.error());
  }
  if (listed.manifest && listed.manifest->id != id) {
    listed.damage = fmt::format("{}: the manifest is of backup {}: use another backup",
                                manifest_path(backup_path(directory, id)), listed.manifest->id);
    listed.manifest.reset();
  }
  return listed;
}

std::unexpected<Error> no_backup(const std::string& directory, const std::string& id) {
  return make_error(ExitCode::failed,
                    fmt::format("{}: holds no backup {}: `atoll backup ls {}` lists them",
                                directory, id, directory));
}

/// Returns the epoch ranges of the backups as text: "20261123T040506Z: epochs 10 to 20; ...".
std::string ranges_text(const std::vector<ListedBackup>& backups) {
  std::string text;
  for (const ListedBackup& backup : backups) {
    if (!text.empty()) text += "; ";
    text += backup.id + ": ";
    if (backup.manifest) {
      text += fmt::format("epochs {} to {}", backup.manifest->oldest_epoch,
                          backup.manifest->durable_epoch);
    } else {
      text += backup.damage.empty() ? "incomplete" : "damaged";
    }
  }
  return text.empty() ? "there are none" : text;
}

Result<void> remove_files_in(FileSystem& file_system, const std::string& folder) {
  ATOLL_ASSIGN(const auto names, file_system.list(folder));
  for (const std::string& name : names) {
    ATOLL_TRY(file_system.remove(path_in(folder, name)));
  }
  return file_system.sync_directory(folder);
}

/// Describes a lock of the whole file.
struct flock whole_file(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

Result<void> change_lock(const UniqueFd& fd, const std::string& path, short type,
                         const std::string& holder) {
  CHECK(fd.is_open());
  struct flock lock = whole_file(type);
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) return {};
  if (errno == EAGAIN || errno == EACCES) {
    return make_error(ExitCode::already_running,
                      fmt::format("{}: is locked by {}: wait until it ends", path, holder));
  }
  return std::unexpected(path_error(path, "cannot be locked", errno, "choose another directory"));
}

Result<UniqueFd> lock_file(const std::string& path, int flags, short type,
                           const std::string& holder) {
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, kLockMode));
  if (!fd.is_open()) {
    return std::unexpected(path_error(path, "cannot be opened", errno, "check its permissions"));
  }
  ATOLL_TRY(change_lock(fd, path, type, holder));
  return fd;
}

}  // namespace

std::string backup_path(const std::string& directory, const std::string& id) {
  return path_in(directory, id);
}

std::string folder_lock_path(const std::string& directory) { return path_in(directory, "lock"); }

std::string backup_lock_path(const std::string& data_dir) {
  return path_in(data_dir, "backup.lock");
}

Result<std::vector<ListedBackup>> list_backups(FileSystem& file_system,
                                               const std::string& directory) {
  std::vector<ListedBackup> backups;
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return backups;
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (!is_backup_id(name)) continue;
    ATOLL_ASSIGN(auto listed, read_listed(file_system, directory, name));
    backups.push_back(std::move(listed));
  }
  return backups;
}

Result<BackupManifest> find_backup(FileSystem& file_system, const std::string& directory,
                                   const std::string& id) {
  const std::string path = backup_path(directory, id);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists || !is_backup_id(id)) return no_backup(directory, id);
  ATOLL_ASSIGN(auto listed, read_listed(file_system, directory, id));
  if (listed.manifest) return *std::move(listed.manifest);
  if (!listed.damage.empty()) return make_error(ExitCode::corruption, listed.damage);
  return make_error(ExitCode::failed,
                    fmt::format("{}: is incomplete: the backup was interrupted or runs: use "
                                "another backup; the next `atoll backup` removes this one",
                                path));
}

Result<BackupManifest> choose_backup(FileSystem& file_system, const std::string& directory,
                                     std::optional<uint64_t> epoch) {
  ATOLL_ASSIGN(auto backups, list_backups(file_system, directory));
  const BackupManifest* newest = nullptr;
  for (const ListedBackup& backup : std::views::reverse(backups)) {
    if (!backup.manifest) continue;
    if (newest == nullptr) newest = &*backup.manifest;
    if (!backup.manifest->is_of_same_data(*newest)) continue;
    const bool has_state = !epoch || (backup.manifest->oldest_epoch <= *epoch &&
                                      *epoch <= backup.manifest->durable_epoch);
    if (has_state) return *backup.manifest;
  }
  const std::string wanted = epoch ? fmt::format("the state at epoch {}", *epoch) : "a state";
  return make_error(ExitCode::failed,
                    fmt::format("{}: no complete backup holds {}: choose an epoch of one of its "
                                "backups ({})",
                                directory, wanted, ranges_text(backups)));
}

Result<void> remove_data_folders(FileSystem& file_system, const std::string& folder) {
  ATOLL_ASSIGN(const auto names, file_system.list(folder));
  for (const std::string& name : names) {
    const std::string path = path_in(folder, name);
    const bool has_data =
        path == coordinator_directory(folder) || parse_node_directory_name(name).has_value();
    if (!has_data) continue;
    ATOLL_TRY(remove_files_in(file_system, path));
    ATOLL_TRY(file_system.remove_directory(path));
  }
  return file_system.sync_directory(folder);
}

Result<void> remove_backup(FileSystem& file_system, const std::string& directory,
                           const std::string& id) {
  const std::string path = backup_path(directory, id);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists || !is_backup_id(id)) return no_backup(directory, id);
  // Removes the manifest first, so that no crash leaves a manifest whose files are missing.
  const std::string manifest = manifest_path(path);
  ATOLL_ASSIGN(const bool is_listed, file_system.exists(manifest));
  if (is_listed) {
    ATOLL_TRY(file_system.remove(manifest));
    ATOLL_TRY(file_system.sync_directory(path));
  }
  ATOLL_TRY(remove_data_folders(file_system, path));
  ATOLL_TRY(remove_files_in(file_system, path));  // also removes an unfinished manifest
  ATOLL_TRY(file_system.remove_directory(path));
  return file_system.sync_directory(directory);
}

Result<FolderLock> FolderLock::exclusive(const std::string& path, const std::string& holder) {
  ATOLL_ASSIGN(auto fd, lock_file(path, O_RDWR | O_CREAT, F_WRLCK, holder));
  CHECK(fd.is_open());
  return FolderLock(std::move(fd), path, holder);
}

Result<FolderLock> FolderLock::shared(const std::string& path, const std::string& holder) {
  auto fd = lock_file(path, O_RDONLY, F_RDLCK, holder);
  if (fd) return FolderLock(*std::move(fd), path, holder);
  if (fd.error().code == ExitCode::already_running) return std::unexpected(fd.error());
  return FolderLock(UniqueFd(), path, holder);
}

Result<void> FolderLock::share() {
  CHECK(fd_.is_open());
  return change_lock(fd_, path_, F_RDLCK, holder_);
}

Result<bool> FolderLock::is_taken(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.is_open()) {
    if (errno == ENOENT) return false;
    return std::unexpected(path_error(path, "cannot be opened", errno, "check its permissions"));
  }
  struct flock lock = whole_file(F_WRLCK);
  if (fcntl(fd.get(), F_OFD_GETLK, &lock) != 0) {
    return std::unexpected(path_error(path, "its lock cannot be read", errno, "check the device"));
  }
  return lock.l_type != F_UNLCK;
}

}  // namespace atolldb
