// Whose a log file is: its header names the cluster. A directory may hold files of others, which
// are left alone (rule R31 keeps their clusters out; this keeps their files whole).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/log/discard_data.h"
#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// "<directory>/node<k>/log_..."
std::string path_of(const LogFilePlace& place);

/// What the header of a log file says.
struct LogFileBegin {
  ClusterUuid cluster_uuid = {};
  uint64_t closed_epoch = 0;  // by its predecessor, last
  uint64_t last_epoch_before = 0;
};

/// Nothing if the header is not intact, or of another file.
Result<std::optional<LogFileBegin>> begin_of(FileSystem& file_system, const LogFilePlace& place);

/// The cluster that the file's header names; nothing if the header is not intact, or of another
/// file.
Result<std::optional<ClusterUuid>> owner_of(FileSystem& file_system, const LogFilePlace& place);

/// Whether the file's header is intact and names another cluster.
Result<bool> is_foreign(FileSystem& file_system, const LogFilePlace& place, const ClusterUuid& own);

}  // namespace atolldb
