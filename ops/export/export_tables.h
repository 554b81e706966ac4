// Writes the tables of a source as CSV files, one per part, with several threads.
//
// INVARIANT: if the manifest calls a part complete, a durable file has the size and the checksum
// that it names. A crash may leave other files: under temporary names, or complete but not listed.
// The next run writes the parts of these files again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ops/export/export_manifest.h"
#include "ops/export/export_source.h"
#include "ops/export/table_schema.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

inline constexpr uint32_t kMaxExportThreads = 64;

struct ExportProgress {
  uint64_t parts = 0;
  uint64_t done = 0;
  uint64_t kept = 0;   // the part of `done` that an earlier run has written
  uint64_t rows = 0;   // in the parts of this run
  uint64_t bytes = 0;  // in the parts of this run
};

/// Called from one thread at a time. An error ends the work and is returned.
using OnExportProgress = std::function<Result<void>(const ExportProgress&)>;

struct ExportRequest {
  std::string directory;  // folder of the export
  uint32_t threads = 1;
  uint32_t parts = 1;          // maximum number of parts of a table
  uint64_t reserve_bytes = 0;  // bytes that must stay free in `directory`
  OnExportProgress on_progress;
};

/// Divides each table of the manifest into parts. Errors: those of ExportSource::split.
Result<void> plan_export(const ExportSource& source, const ExportRequest& request,
                         const ExportSchema& schema, ExportManifest& manifest);

/// Writes all parts that are not complete, or whose files differ from the manifest, and marks the
/// manifest as complete. REQUIRES: plan_export has divided the tables.
Result<void> export_tables(FileSystem& file_system, const ExportSource& source,
                           const ExportRequest& request, const ExportSchema& schema,
                           ExportManifest& manifest);

}  // namespace atolldb
