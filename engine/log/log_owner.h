// Whose a log file is: its header names the cluster. A directory may hold files of others, which
// are left alone (rule R31 keeps their clusters out; this keeps their files whole).
#pragma once

#include <optional>
#include <string>

#include "engine/log/discard_data.h"
#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// "<directory>/node<k>/log_..."
std::string path_of(const LogFilePlace& place);

/// The cluster that the file's header names; nothing if the header is not intact, or of another
/// file.
Result<std::optional<ClusterUuid>> owner_of(FileSystem& file_system, const LogFilePlace& place);

/// Whether the file's header is intact and names another cluster.
Result<bool> is_foreign(FileSystem& file_system, const LogFilePlace& place, const ClusterUuid& own);

}  // namespace atolldb
