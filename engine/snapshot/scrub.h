// Reads files of snapshots and logs to find damage before somebody needs what is there (rule R56).
// Every page and block is checked as its readers check it. Reads past the page cache where the
// file system does; changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/log/log_reader.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// A page, block or file that cannot be read.
struct ScrubDamage {
  std::string path;
  uint64_t offset = 0;   // in bytes
  uint32_t storage = 0;  // 0: not known
  std::string range;     // of keys or records, as far as it is known; for people
  std::string reason;

  bool operator==(const ScrubDamage&) const = default;
};

struct ScrubHooks {
  /// Told of each read, before it; false ends the scrub.
  std::function<bool(uint64_t bytes)> reads;
  std::function<void(const ScrubDamage&)> found;
};

/// All pages of a file, page 0 included. Stand-ins are no damage: the pages that they stand for
/// are. An error is what keeps it from reading at all, and is no damage.
Result<void> scrub_snapshot_file(FileSystem& file_system, const SnapshotFilePlace& place,
                                 const ClusterUuid& cluster_uuid, const ScrubHooks& hooks);

/// All blocks of one logger's stream but those of its newest file, which may be written to. First
/// files that were deleted are no damage.
Result<void> scrub_log(FileSystem& file_system, LogStream stream, const ScrubHooks& hooks);

}  // namespace atolldb
