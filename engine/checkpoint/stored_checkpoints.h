// Lists the files of checkpoints that exist, complete or not. Used by tools, and by the code that
// deletes files. Only reads.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint_file.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

enum class StoredCheckpointKind : uint8_t {
  metadata,    // checkpoint_<id>.meta
  unfinished,  // checkpoint_<id>.meta.new, left by a crash while metadata was written
  records,     // checkpoint_<id>_<writer>_<number>.atcp
};

struct StoredCheckpointFile {
  std::string path;
  uint64_t checkpoint = 0;
  uint32_t node = 0;      // number of a node, or kCoordinator
  std::string directory;  // data_dir for kCoordinator, else a directory of the node
  StoredCheckpointKind kind = StoredCheckpointKind::records;

  std::string name() const { return path.substr(path.rfind('/') + 1); }
};

struct StoredCheckpointName {
  uint64_t checkpoint = 0;
  StoredCheckpointKind kind = StoredCheckpointKind::records;
};

/// Parses the name of a file of a checkpoint. Returns nothing if the name is not exactly one that
/// the writers of these files use.
std::optional<StoredCheckpointName> parse_stored_checkpoint_name(std::string_view name);

/// Returns the files of checkpoints in data_dir/coordinator/ and in the folders node<k>/ of
/// data_dir and of all `directories`. Also searches the directories that the metadata in
/// data_dir/coordinator/ names. Sorts the files by checkpoint, kind, node and path. So the metadata
/// of a checkpoint come before its other files.
Result<std::vector<StoredCheckpointFile>> checkpoint_files_in(
    FileSystem& file_system, const std::string& data_dir, const std::set<std::string>& directories);

/// Returns whether `file` has records, and its header names another cluster.
Result<bool> is_foreign(FileSystem& file_system, const StoredCheckpointFile& file,
                        const ClusterUuid& own);

}  // namespace atolldb
