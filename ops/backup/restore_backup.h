// Restores a backup into a new data directory, cut at an epoch (R66).
//
// The steps, in order:
//   <to>/owner.restoring     the future owner file, written first
//   <to>/node<k>/...         copies of log files and snapshot files, checked by the manifest
//   <to>/coordinator/...     metadata, DDL log, times of epochs, savepoint
//   (check)                  the rules of a start-up
//   <to>/owner               last: owner.restoring is renamed to it
//
// Until the last step a start-up is refused, and a repeated restore begins again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/epoch_times.h"
#include "ops/backup/archived_log.h"
#include "ops/backup/backup_manifest.h"
#include "ops/backup/take_backup.h"
#include "ops/launcher/directory_location.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct RestoreRequest {
  std::string folder;       // of the backup: DIR/<id>
  std::string to;           // the new data_dir; REQUIRES: it exists
  BackupManifest manifest;  // of the backup
  uint64_t epoch = 0;       // restores the state at its end; REQUIRES: the backup has that state
  OnBackupProgress on_progress;
  LocateDirectory locate = locate_directory;
  /// The backup with the log of an archive; `manifest` is then its manifest. Null: the backup
  /// alone.
  const ExtendedBackup* extension = nullptr;
};

struct Restored {
  std::string id;         // of the new data directory
  uint32_t snapshot = 0;  // id of the snapshot with which the start-up begins; 0: none
  uint64_t snapshot_epoch = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

/// Restores the backup. First removes an interrupted restore from `to`. Returns the errors of
/// check_restore_target. Returns code corruption if a file of the backup is damaged; the message
/// names it. After an error `to` holds an interrupted restore. REQUIRES: the lock of `to` is held.
Result<Restored> restore_backup(FileSystem& file_system, const RestoreRequest& request);

/// Returns code failed if `to` exists and holds anything but an interrupted restore, a lock file or
/// lost+found. Changes nothing.
Result<void> check_restore_target(FileSystem& file_system, const std::string& to);

/// Returns the epoch that the backup has for a point in time. Returns code failed if the time is
/// before the first known one, or after the begin of the backup.
Result<EpochTime> epoch_of_time(FileSystem& file_system, const std::string& folder,
                                const BackupManifest& manifest, uint64_t unix_ms);

/// Does the same for a backup that the log of an archive extends. The time may be as late as the
/// last recorded time of an archived epoch.
Result<EpochTime> epoch_of_time(const std::string& archive, const ExtendedBackup& extended,
                                uint64_t unix_ms);

/// Checks the size and the CRC32C of every file of a backup, then restorability. Returns the first
/// damage with code corruption.
Result<void> verify_backup(FileSystem& file_system, const std::string& folder,
                           const BackupManifest& manifest, const OnBackupProgress& on_progress);

}  // namespace atolldb
