// Shared parts of `atoll export` and `atoll import`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/cli/cluster_finder.h"
#include "ops/cli/wal_data.h"
#include "ops/export/table_schema.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb::cli {

struct ExportOptions : DataOptions {
  std::string directory;  // DIR of the command line
  std::string schema;
  std::vector<std::string> tables;   // empty: all of the schema
  std::optional<uint32_t> snapshot;  // no value: a new one, or the newest of a stopped cluster
  bool is_resumed = false;
  bool wants_parquet = false;
  uint32_t parts = 16;
  uint32_t threads = 4;
  uint64_t memory_bytes = 0;  // limit of an export of a checkpoint; 0: default_export_memory
  std::string python;         // Python program; empty: that of `ops/setup --parquet`, or python3
};

Result<void> export_snapshot(const ClusterChoice& choice, const ExportOptions& options);

struct SchemaFile {
  std::string text;  // without newlines at its end
  ExportSchema schema;
};

/// Returns code usage if the file is missing, code config if it has a mistake.
Result<SchemaFile> read_schema_file(FileSystem& file_system, const std::string& path);

/// Converts the CSV files of a complete export with ops/export/to_parquet.py. The program prints
/// its own errors; the error of this function then has no message.
Result<void> convert_to_parquet(const std::string& directory, const std::string& python);

}  // namespace atolldb::cli
