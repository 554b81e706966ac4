// Shared parts of `atoll backup` and `atoll restore`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ops/backup/backup_manifest.h"
#include "ops/backup/take_backup.h"
#include "ops/cli/cluster_finder.h"
#include "ops/cli/wal_data.h"
#include "shared/base/error.h"

namespace atolldb::cli {

struct BackupOptions : DataOptions {
  std::string directory;  // DIR of the command line
  std::string id;         // verify: only this backup; rm: this one
};

struct RestoreOptions {
  std::string from;  // DIR or DIR/<id>
  std::string to;
  std::optional<uint64_t> epoch;
  std::string time;     // empty: not given
  std::string archive;  // directory of the archive; empty: none
  bool json = false;
};

Result<void> take_backup_of(const ClusterChoice& choice, const BackupOptions& options);
Result<void> list_backups_in(const BackupOptions& options);
Result<void> verify_backups_in(const BackupOptions& options);
Result<void> remove_backup_in(const BackupOptions& options);
Result<void> restore_to(const RestoreOptions& options);

/// Returns the absolute path without "." and "..". Links are resolved as far as the path exists.
std::string absolute_path(const std::string& path);

/// Refuses a directory of a command that lies in data_dir or contains it. The directory must
/// outlive its cluster, and must not look like data of the cluster. `command`: prefix of the error.
Result<void> refuse_nested(const std::string& command, const std::string& directory,
                           const std::string& data_dir);

/// For errors: the programs that may hold the lock of DIR.
inline constexpr const char* kFolderUsers = "another `atoll backup`, `atoll restore` or their like";

/// Makes SIGINT, SIGTERM and SIGHUP end the work at the next part of a file, so that the command
/// can clean up. A second signal ends the command at once.
void catch_interrupts();
/// Returns whether one of these signals has arrived.
bool was_interrupted();

/// Returns a function that ends the work after a signal. If standard error is a terminal, the
/// function also shows the progress there in one line, at most once per second. The line is erased
/// when the last copy of the function is destroyed.
OnBackupProgress progress_line();

}  // namespace atolldb::cli
