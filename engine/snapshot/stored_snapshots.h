// Lists the snapshot files that exist, complete or not. Used by tools, and by the code that deletes
// files. Only reads.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

enum class StoredSnapshotKind : uint8_t {
  pages,       // snapshot_<id>.atsnap
  metadata,    // snapshot_<id>.meta
  unfinished,  // snapshot_<id>.meta.new, left by a crash while metadata was written
};

struct StoredSnapshotFile {
  std::string path;
  uint32_t snapshot = 0;
  uint32_t node = 0;      // number of a node, or kCoordinator
  std::string directory;  // data_dir for kCoordinator, else a directory of the node
  StoredSnapshotKind kind = StoredSnapshotKind::pages;
};

struct SnapshotFileName {
  uint32_t snapshot = 0;
  StoredSnapshotKind kind = StoredSnapshotKind::pages;
};

/// Parses the name of a snapshot file. Returns nothing if the name is not exactly one that the
/// writers of these files use.
std::optional<SnapshotFileName> parse_snapshot_file_name(std::string_view name);

/// Returns the snapshot files in data_dir/coordinator/ and in the folders node<k>/ of all
/// `directories`. Also searches the directories that the metadata in data_dir/coordinator/ names.
/// Sorts the files by snapshot, node and directory.
Result<std::vector<StoredSnapshotFile>> snapshot_files_in(FileSystem& file_system,
                                                          const std::string& data_dir,
                                                          const std::set<std::string>& directories);

/// Returns whether `file` holds pages and its header names another cluster.
Result<bool> is_foreign(FileSystem& file_system, const StoredSnapshotFile& file,
                        const ClusterUuid& own);

}  // namespace atolldb
