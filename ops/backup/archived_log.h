// Extends a backup by the log of an archive (engine/archive): the restore begins with a snapshot of
// the backup, and gleans the backup's log and the archive's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/archive/archive_content.h"
#include "engine/log/ddl_log.h"
#include "engine/log/epoch_times.h"
#include "engine/log/savepoint.h"
#include "ops/backup/backup_manifest.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// A log file that a restore takes from the archive.
struct ArchivedLog {
  std::string path;          // in the archive
  uint64_t after_epoch = 0;  // the files before it reach this epoch: an earlier state needs it not
};

/// What a restore reads instead of the backup alone.
struct ExtendedBackup {
  BackupManifest manifest;  // with the archive's log files, and the last epoch that they reach
  Savepoint savepoint;      // with the incarnations up to that epoch
  std::vector<DdlRecord> ddl;
  std::vector<EpochTime> times;             // ascending
  std::map<std::string, ArchivedLog> logs;  // by path in the manifest
  std::string end;  // why the archive reaches no further, with the file that is missing
};

/// Reads the DDL log, the times and the savepoint of the backup at `folder`, and adds what the
/// archive has after it, up to the first gap. Files are searched, not read. Returns code failed if
/// the archive is of other data, and code corruption if the backup is damaged or has another DDL
/// log than the archive. REQUIRES: `manifest` is of that backup.
Result<ExtendedBackup> extend_backup(FileSystem& file_system, const std::string& folder,
                                     const BackupManifest& manifest, const std::string& archive,
                                     const ArchiveContent& content);

}  // namespace atolldb
