// What a snapshot is: data_dir/coordinator/snapshot_<id>.meta (design: stratified snapshots;
// foedus.txt section 7.4). The snapshot exists once the savepoint names it. The file names
// directories by their roles (rule R48), which data_dir/directories resolves (directory_table.h).
// Version 1 has paths instead; it is read, and no more written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/error.h"
#include "shared/file/file.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// A storage as of the snapshot.
struct SnapshotStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  std::string name;
  SnapshotPointer root;  // null: empty
  uint64_t records = 0;  // sequential: in all; others: written by this run's composers

  bool operator==(const SnapshotStorage&) const = default;
};

struct SnapshotMetadata {
  uint32_t id = 0;
  uint32_t base = 0;  // the snapshot it was made from; 0: none
  uint64_t epoch = 0;
  uint64_t base_epoch = 0;
  ClusterUuid cluster_uuid = {};
  std::vector<SnapshotStorage> storages;  // ascending ids
  std::vector<SnapshotFilePlace> files;   // all that its pages may lie in, older ones included

  bool operator==(const SnapshotMetadata&) const = default;
};

/// data_dir/coordinator/snapshot_<id>.meta
std::string snapshot_metadata_path(const std::string& data_dir, uint32_t id);

/// Durable when it returns. Replaces a leftover of the same name.
Result<void> write_snapshot_metadata(FileSystem& file_system, const std::string& data_dir,
                                     const SnapshotMetadata& metadata);
/// Missing or damaged: code corruption, with file and reason.
Result<SnapshotMetadata> read_snapshot_metadata(FileSystem& file_system,
                                                const std::string& data_dir, uint32_t id);

}  // namespace atolldb
