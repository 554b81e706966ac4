// Takes a backup of a cluster, running or stopped: DIR/<id> gets a complete data directory without
// an owner file, and a manifest (README.md).
//
// The caller has made sure that the cluster deletes nothing that the backup needs: it has pinned
// the snapshots (R65), or it holds the locks of the data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/log/savepoint.h"
#include "ops/backup/backup_manifest.h"
#include "ops/backup/backup_progress.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct BackupRequest {
  std::string data_dir;   // of the cluster
  std::string directory;  // DIR
  std::string id;         // DIR/<id> is new or an empty folder
  std::string cluster;    // name of the cluster
  /// Ids of the snapshots to copy; 0: none. If `older` is damaged, the backup has `newest` alone.
  /// REQUIRES: `older` is older than `newest`. The cluster has all log after the oldest of them, or
  /// the whole log if both are 0.
  uint32_t newest = 0;
  uint32_t older = 0;
  /// The last complete backup in DIR, whose final files are linked if it is of the same data.
  std::optional<BackupManifest> previous;
  OnBackupProgress on_progress;
  /// Receives texts for the user. May be empty.
  std::function<void(const std::string&)> warn = {};
  /// Epoch that a running cluster named as durable before the backup began. Each copy of a log that
  /// is being written must reach it. No value: the cluster is stopped, so its logs do not change.
  std::optional<uint64_t> durable_epoch = {};
};

/// Returns the manifest, which is durable with the whole backup. After an error, DIR/<id> is
/// incomplete. Returns code corruption if the data are damaged, with file and offset.
/// REQUIRES: DIR exists.
Result<BackupManifest> take_backup(FileSystem& file_system, const BackupRequest& request);

/// Reads the savepoint. Repeats the read if a slot is damaged, because a live coordinator may be
/// writing it. Returns code failed if there is no savepoint.
Result<Savepoint> read_live_savepoint(FileSystem& file_system, const std::string& data_dir);

/// Checks by the rules of a start-up that the folder of a backup can be restored: savepoint, DDL
/// log, all snapshots' metadata and file headers, and all log after the oldest snapshot. Returns
/// code corruption with file and reason.
Result<void> check_restorable(FileSystem& file_system, const std::string& folder);

}  // namespace atolldb
