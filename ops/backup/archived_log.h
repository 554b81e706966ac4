// Extends a backup by the log of an archive (engine/archive). The restore begins with a snapshot of
// the backup, and recovers the log of the backup and then that of the archive.
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
  uint64_t after_epoch = 0;  // epoch that the earlier files reach; only later states need this file
};

/// A backup with the log of an archive: the input of a restore.
struct ExtendedBackup {
  BackupManifest manifest;  // also lists the archive's log files; ends at the epoch that they reach
  Savepoint savepoint;      // also has the incarnations of the archive up to that epoch
  std::vector<DdlRecord> ddl;
  std::vector<EpochTime> times;             // ascending
  std::map<std::string, ArchivedLog> logs;  // by path in the manifest
  std::string end;  // why the archive has no later log; names the missing file
};

/// Reads the DDL log, the times and the savepoint of the backup at `folder`. Adds what the archive
/// has after them, up to the first gap. Looks up the log files by name and does not read them.
/// Returns code failed if the archive is of other data. Returns code corruption if the backup is
/// damaged, or if its DDL log differs from that of the archive. REQUIRES: `manifest` is of that
/// backup.
Result<ExtendedBackup> extend_backup(FileSystem& file_system, const std::string& folder,
                                     const BackupManifest& manifest, const std::string& archive,
                                     const ArchiveContent& content);

}  // namespace atolldb
