// Metadata file of a snapshot: data_dir/coordinator/snapshot_<id>.meta. A snapshot exists once the
// savepoint names it. The file names directories by their roles (R48), which data_dir/directories
// resolves (directory_table.h). Version 3 lacks the counts of records, version 2 also those of live
// pages, and version 1 has paths instead of roles. They are still read, but no longer written.
// Source: [FOEDUS15] section 7.4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "engine/snapshot/live_pages.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/base/error.h"
#include "shared/file/file.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// A storage as of the snapshot.
struct SnapshotStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  std::string name;
  SnapshotPointer root;  // null: the storage is empty
  // Sequential storages: number of all records. Other storages: number of log records that this
  // snapshot job applied.
  uint64_t records = 0;

  bool operator==(const SnapshotStorage&) const = default;
};

/// The number of records of a Master-tree as of the snapshot.
struct RecordCount {
  uint32_t storage_id = 0;
  uint64_t records = 0;
  /// This snapshot or one before it has replaced pages whose records were not counted.
  bool is_estimate = false;

  bool operator==(const RecordCount&) const = default;
};

struct SnapshotMetadata {
  uint32_t id = 0;
  uint32_t base = 0;  // snapshot on which this one was built; 0: none
  uint64_t epoch = 0;
  uint64_t base_epoch = 0;
  ClusterUuid cluster_uuid = {};
  std::vector<SnapshotStorage> storages;  // ascending by id
  std::vector<SnapshotFilePlace> files;   // all files that may hold its pages, older ones included
  std::vector<LivePages> live = {};       // R67; ascending by live_order, no count is 0
  /// Snapshots whose files have unknown numbers of live pages, ascending (R67). `live` has no
  /// entries for them. They come from metadata without counts (version 1 or 2). Or the snapshot job
  /// could not read a page of the base; then all snapshots are listed here.
  std::vector<uint32_t> uncounted = {};
  /// Ascending by storage. A Master-tree has no entry if its number of records is not known: it is
  /// in a snapshot of an older version.
  std::vector<RecordCount> record_counts = {};

  bool operator==(const SnapshotMetadata&) const = default;
};

/// Returns the snapshots whose files hold pages of this one, ascending.
std::vector<uint32_t> snapshots_of(const std::vector<SnapshotFilePlace>& files);

/// Returns data_dir/coordinator/snapshot_<id>.meta.
std::string snapshot_metadata_path(const std::string& data_dir, uint32_t id);

/// Writes the metadata durably. Replaces a leftover of the same name.
Result<void> write_snapshot_metadata(FileSystem& file_system, const std::string& data_dir,
                                     const SnapshotMetadata& metadata);
/// Reads metadata.
/// Error: code corruption, with file and reason, if the file is missing or damaged.
Result<SnapshotMetadata> read_snapshot_metadata(FileSystem& file_system,
                                                const std::string& data_dir, uint32_t id);

}  // namespace atolldb
