// The volume of log that a snapshot has to read, for progress displays.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/gleaner/snapshot_plan.h"
#include "shared/config/config.h"
#include "shared/file/file.h"

namespace atolldb {

/// Returns the written bytes of these streams' files, which are preallocated. Blocks that a
/// snapshot covers and mappers skip do not count. Reads a few blocks of each file, and up to 16 MiB
/// of each stream to find the end of the covered part. Unreadable parts count 0, because the
/// snapshot job reports the error.
uint64_t log_volume(FileSystem& file_system, const std::vector<PlannedStream>& streams);

/// Returns the size of the written blocks of all log files in the config's directories. Unreadable
/// files count 0.
uint64_t log_file_bytes(FileSystem& file_system, const Config& config);

}  // namespace atolldb
