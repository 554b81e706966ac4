// The manifest of an export, DIR/export.json: the snapshot, and the parts that are complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "ops/verify/snapshot_walk.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

inline constexpr uint32_t kExportVersion = 1;
/// Maximum number of parts of one table. The number in a file's name has 4 digits.
inline constexpr uint32_t kMaxTableParts = 1'024;
/// Maximum number of parts of all tables together. With so many, the manifest fits into a text
/// file.
inline constexpr size_t kMaxExportParts = 65'536;

struct ExportPart {
  WalkRange range;
  bool is_complete = false;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // CRC32C of the CSV file

  bool operator==(const ExportPart&) const = default;
};

struct ExportColumn {
  std::string name;
  std::string type;  // type as the schema names it

  bool operator==(const ExportColumn&) const = default;
};

struct ExportTable {
  std::string name;
  std::vector<ExportColumn> columns;
  std::vector<ExportPart> parts;  // empty: the table is not divided yet
  /// Of a checkpoint: id of the storage. 0: of a snapshot, or not read yet.
  uint32_t storage = 0;

  bool operator==(const ExportTable&) const = default;
};

struct ExportManifest {
  std::string pin;  // name of the pin that keeps the snapshot
  ClusterUuid cluster_uuid = {};
  uint32_t snapshot = 0;  // id of the snapshot; 0: not pinned yet
  uint64_t epoch = 0;
  uint32_t schema_crc32c = 0;  // CRC32C of DIR/schema.toml
  /// Of a checkpoint: CheckpointSource::input_crc32c. 0: of a snapshot, or not read yet.
  uint32_t input_crc32c = 0;
  bool is_complete = false;
  std::vector<ExportTable> tables;

  /// Returns whether all tables are divided into parts. Then the snapshot and the epoch are chosen.
  bool is_planned() const;
  bool operator==(const ExportManifest&) const = default;
};

std::string export_manifest_path(const std::string& directory);
std::string export_schema_path(const std::string& directory);
std::string table_folder(const std::string& directory, const std::string& table);
/// Returns "part-0007.csv" for example.
std::string part_name(size_t part);

/// Writes the manifest durably.
Result<void> write_export_manifest(FileSystem& file_system, const std::string& directory,
                                   const ExportManifest& manifest);
/// Returns nothing if there is no manifest. Returns code corruption if it is damaged.
Result<std::optional<ExportManifest>> read_export_manifest(FileSystem& file_system,
                                                           const std::string& directory);

}  // namespace atolldb
