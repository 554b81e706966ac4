// The locks of the data directory and of all log directories, before anything looks at what is in
// them (R31).
#pragma once

#include <optional>
#include <utility>
#include <vector>

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

/// Makes the directories durably (R28), locks each, and makes them this cluster's; nothing if the
/// config keeps no data. Code already_running: a live cluster has one of them; failed: one of them
/// is another cluster's, which may not run.
Result<std::optional<DataLock>> lock_data(const Config& config);
/// With another file system below the directories.
Result<std::optional<DataLock>> lock_data(const Config& config, FileSystem& file_system);

}  // namespace atolldb
