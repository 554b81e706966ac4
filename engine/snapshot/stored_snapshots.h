// Which files of snapshots there are, complete or not: for tools, and for what deletes them. Reads
// only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

enum class StoredSnapshotKind : uint8_t {
  pages,       // snapshot_<id>.atsnap
  metadata,    // snapshot_<id>.meta
  unfinished,  // what a crash left of writing metadata: snapshot_<id>.meta.new
};

struct StoredSnapshotFile {
  std::string path;
  uint32_t snapshot = 0;
  uint32_t node = 0;      // or kCoordinator
  std::string directory;  // see snapshot_file_path
  StoredSnapshotKind kind = StoredSnapshotKind::pages;
};

struct SnapshotFileName {
  uint32_t snapshot = 0;
  StoredSnapshotKind kind = StoredSnapshotKind::pages;
};

/// Nothing if it is not the name of a file of a snapshot, exactly as it is written.
std::optional<SnapshotFileName> parse_snapshot_file_name(std::string_view name);

/// Those in data_dir's coordinator/ and in the node<k>/ of all `directories`, ascending by
/// snapshot, node and directory.
Result<std::vector<StoredSnapshotFile>> snapshot_files_in(FileSystem& file_system,
                                                          const std::string& data_dir,
                                                          const std::set<std::string>& directories);

/// Whether the file has pages, begins with a header, and that names another cluster.
Result<bool> is_foreign(FileSystem& file_system, const StoredSnapshotFile& file,
                        const ClusterUuid& own);

}  // namespace atolldb
