// Makes a start read from the device, not from the page cache (R53). After a failed sync the page
// cache may hold pages that the device has refused, and marks them as clean. A start that trusts
// such pages builds on data that is lost when the kernel evicts them.
#pragma once

#include <set>
#include <string>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Drops the cached pages of savepoint, DDL log and snapshot metadata.
Result<void> forget_cached_state(FileSystem& file_system, const std::string& data_dir);
/// Drops the cached pages of all log files in the directories.
Result<void> forget_cached_logs(FileSystem& file_system, const std::set<std::string>& directories);

}  // namespace atolldb
