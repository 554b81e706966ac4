// The locks of the data directory and of all other directories that the config or the data name,
// before anything looks at what is in them (rules R31, R47, R50).
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

  /// What every process of the cluster inherits.
  std::vector<int> fds() const;
  /// As ProcessLock's.
  Result<void> write_processes(const std::vector<ProcessId>& children);
  void forget_processes();

 private:
  std::vector<ProcessLock> locks_;  // one for each directory
};

/// Makes the configured directories durably (R28), locks them and those that the data name, checks
/// that each is where it was, and makes the configured ones this cluster's; nothing if the config
/// keeps no data. Code already_running: a live cluster has one of them; identity: one of them was
/// moved, or is a copy; failed: one of them is another cluster's, which may not run.
Result<std::optional<DataLock>> lock_data(const Config& config);
/// With another file system below the directories.
Result<std::optional<DataLock>> lock_data(const Config& config, FileSystem& file_system,
                                          const LocateDirectory& locate = locate_directory);

/// The same of a dead cluster's data, which exist, for a tool: nothing is made, and no directory
/// becomes the cluster's. `tool`: who asks, for others that find the lock.
Result<DataLock> lock_dead_data(const std::string& tool, const std::string& data_dir,
                                const std::vector<std::string>& configured,
                                FileSystem& file_system);

}  // namespace atolldb
