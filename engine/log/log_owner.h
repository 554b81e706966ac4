// Determines the owner of a log file: its header names the cluster. A directory may hold files of
// other clusters, which a start does not touch. (R31 keeps two clusters from using one data
// directory; this check protects the files of the other cluster.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/log/log_files.h"
#include "engine/log/log_writer.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// "<directory>/node<k>/log_..."
std::string path_of(const LogFilePlace& place);

/// Fields of a log file's header.
struct LogFileBegin {
  ClusterUuid cluster_uuid = {};
  uint64_t closed_epoch = 0;  // the last epoch that the previous file closed
  uint64_t last_epoch_before = 0;
};

/// Returns the header's fields, or nothing if the header is damaged or belongs to another file.
Result<std::optional<LogFileBegin>> begin_of(FileSystem& file_system, const LogFilePlace& place);

/// Returns the cluster that the header names, or nothing if the header is damaged or belongs to
/// another file.
Result<std::optional<ClusterUuid>> owner_of(FileSystem& file_system, const LogFilePlace& place);

/// Returns true if the file's header is intact and names another cluster.
Result<bool> is_foreign(FileSystem& file_system, const LogFilePlace& place, const ClusterUuid& own);

}  // namespace atolldb
