// The locks of data_dir and of every other directory that the config or the data name. The launcher
// takes the locks before anything reads the contents of the directories (R31, R47, R50).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/launcher/directory_location.h"
#include "ops/launcher/process_lock.h"
#include "shared/config/config.h"
#include "shared/file/file.h"

namespace atolldb {

class DataLock {
 public:
  explicit DataLock(std::vector<ProcessLock> locks) : locks_(std::move(locks)) {}

  /// Returns the descriptors that every process of the cluster inherits: for each directory its
  /// lock file, and the directory itself if it is locked, too.
  std::vector<int> fds() const;
  /// Returns code failed if a directory or its lock file has been removed or replaced since it was
  /// locked. Called right before recovery, because a volume may have been mounted over a directory.
  /// Such a volume has neither a lock nor a known identity.
  Result<void> check_in_place() const;
  /// Returns a warning for each directory whose file system cannot lock directories.
  std::vector<std::string> warnings() const;
  /// The two functions below call those of ProcessLock for every lock.
  Result<void> write_processes(const std::vector<ProcessId>& children);
  void forget_processes();

 private:
  std::vector<ProcessLock> locks_;  // one per directory
};

/// Creates the configured directories durably (R28). Locks them and those that the data name.
/// Checks that each is where its owner file says, and claims the configured ones for this cluster.
/// Returns nothing if the config keeps no data. Returns code already_running if a live cluster uses
/// one of them, or identity if one was moved or copied. Returns code failed if one belongs to
/// another cluster, running or not.
Result<std::optional<DataLock>> lock_data(const Config& config);
/// Does the same, with `file_system` for the directories.
Result<std::optional<DataLock>> lock_data(const Config& config, FileSystem& file_system,
                                          const LocateDirectory& locate = locate_directory);

/// Locks the existing data of a dead cluster for a tool. Creates and claims nothing. `tool`: the
/// name that other processes read from the lock.
Result<DataLock> lock_dead_data(const std::string& tool, const std::string& data_dir,
                                const std::vector<std::string>& configured,
                                FileSystem& file_system);

}  // namespace atolldb
