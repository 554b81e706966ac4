// Exports the records of a snapshot. It reads the files of the snapshot, so it puts no load on the
// cluster's workers.
#pragma once

#include <memory>
#include <string>

#include "ops/export/export_manifest.h"
#include "ops/export/export_source.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Opens the snapshot of the manifest. REQUIRES: the snapshot is pinned; `file_system` outlives the
/// source. Errors: code identity if the snapshot is of another epoch than the manifest says, or of
/// another cluster; those of damaged files.
Result<std::unique_ptr<ExportSource>> open_snapshot_source(FileSystem& file_system,
                                                           const std::string& data_dir,
                                                           const ExportManifest& manifest);

}  // namespace atolldb
