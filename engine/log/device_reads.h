// A start reads what the device has (R53). After a sync that failed, the page cache may still hold
// what the device has refused, and calls it clean: a start that took it for durable would build on
// data that the next eviction takes away.
#pragma once

#include <set>
#include <string>

#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Of savepoint, DDL log and metadata of snapshots.
Result<void> forget_cached_state(FileSystem& file_system, const std::string& data_dir);
/// Of all log files in the directories.
Result<void> forget_cached_logs(FileSystem& file_system, const std::set<std::string>& directories);

}  // namespace atolldb
