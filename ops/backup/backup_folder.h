// The folder of backups, DIR: one folder per backup, and a lock file.
//
//   DIR/lock                            exclusive: removals; shared: backups and readers
//   DIR/<id>/manifest.json              written last, removed first (backup_manifest.h)
//   DIR/<id>/coordinator/...            files of data_dir/coordinator (engine/log/log_files.h)
//   DIR/<id>/node<k>/...                log files and snapshot files of all directories
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/backup/backup_manifest.h"
#include "shared/base/error.h"
#include "shared/base/unique_fd.h"
#include "shared/file/file.h"

namespace atolldb {

/// A backup, as found in DIR. Without a manifest it is damaged if `damage` is set, else incomplete.
struct ListedBackup {
  std::string id;
  std::optional<BackupManifest> manifest;
  std::string damage;  // why the manifest cannot be read; empty: it is intact or missing

  bool is_complete() const { return manifest.has_value(); }
};

/// DIR/<id>
std::string backup_path(const std::string& directory, const std::string& id);

/// Returns all backups, the oldest first. A missing DIR has none.
Result<std::vector<ListedBackup>> list_backups(FileSystem& file_system,
                                               const std::string& directory);

/// Returns the manifest of a complete backup. Returns code failed if the backup does not exist or
/// is incomplete, code corruption if its manifest is damaged; the message names it.
Result<BackupManifest> find_backup(FileSystem& file_system, const std::string& directory,
                                   const std::string& id);

/// Returns the backup that a restore takes: the newest one that can restore the state at the epoch,
/// or without an epoch the newest complete one. Only backups of the same data as the newest count,
/// because epochs of other data mean other commits. Returns code failed, with all ranges, if there
/// is none.
Result<BackupManifest> choose_backup(FileSystem& file_system, const std::string& directory,
                                     std::optional<uint64_t> epoch);

/// Removes a backup, complete or not. Other backups keep files that they share with it, because
/// they have links of their own. A crash leaves an incomplete backup, which can be removed again.
/// Returns code failed if the backup does not exist.
Result<void> remove_backup(FileSystem& file_system, const std::string& directory,
                           const std::string& id);

/// Removes the files in the folders `coordinator` and node<k> of `folder`, then these folders.
Result<void> remove_data_folders(FileSystem& file_system, const std::string& folder);

/// An advisory lock (F_OFD_SETLK). The kernel releases it when the process ends.
class FolderLock {
 public:
  /// Creates the file and locks it. Returns code already_running, with `holder`, if another process
  /// has it.
  static Result<FolderLock> exclusive(const std::string& path, const std::string& holder);
  /// Shares the lock with other readers. Succeeds without a lock if the file is missing or cannot
  /// be opened, because DIR may be on a read-only medium.
  static Result<FolderLock> shared(const std::string& path, const std::string& holder);
  /// Turns an exclusive lock into a shared one. No other process can have the lock in between.
  Result<void> share();
  /// Returns whether a process holds the lock, or false if the file is missing. Does not take it,
  /// so that no other process is refused meanwhile.
  static Result<bool> is_taken(const std::string& path);

 private:
  FolderLock(UniqueFd fd, std::string path, std::string holder)
      : fd_(std::move(fd)), path_(std::move(path)), holder_(std::move(holder)) {}

  UniqueFd fd_;
  std::string path_;
  std::string holder_;  // for errors
};

/// DIR/lock
std::string folder_lock_path(const std::string& directory);
/// data_dir/backup.lock. A backup of the cluster holds the lock from before it makes its first pin
/// until it has removed its pins.
std::string backup_lock_path(const std::string& data_dir);

}  // namespace atolldb
