// Reads the files of snapshots, checkpoints and logs to find damage before a reader needs the data
// (R56). It checks every page and block as their readers do. It reads past the page cache if the
// file system can, and changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/log/log_reader.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// A page, block or file that cannot be read.
struct ScrubDamage {
  std::string path;
  uint64_t offset = 0;   // in bytes
  uint32_t storage = 0;  // 0: unknown
  std::string range;     // range of keys or records if it is known, as human-readable text
  std::string reason;

  bool operator==(const ScrubDamage&) const = default;
};

struct ScrubHooks {
  /// Called before each read. Returns false to end the scrub.
  std::function<bool(uint64_t bytes)> reads;
  std::function<void(const ScrubDamage&)> found;
};

/// Checks all pages of a file, page 0 included. A stand-in is not damage; the page that it replaces
/// is damage of its own file. An error means that the function could not read at all; it is not
/// damage.
Result<void> scrub_snapshot_file(FileSystem& file_system, const SnapshotFilePlace& place,
                                 const ClusterUuid& cluster_uuid, const ScrubHooks& hooks);

/// Checks all blocks of file number `file` of a checkpoint, up to the first damaged one. Before
/// each block it announces a read of kCheckpointBlockBytes, which is about the size of a block. An
/// error means that the function could not read at all; it is not damage.
Result<void> scrub_checkpoint_file(FileSystem& file_system, const CheckpointMetadata& metadata,
                                   size_t file, const ScrubHooks& hooks);

/// Checks all blocks of one logger's stream except those of the newest file, to which a logger may
/// still write. Missing first files are not damage, since they may have been deleted.
Result<void> scrub_log(FileSystem& file_system, LogStream stream, const ScrubHooks& hooks);

}  // namespace atolldb
