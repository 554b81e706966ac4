// Division of a replay over the processes that replay together: each file has one process that
// reads it. Updates of parts, appends and blocked records have one process that keeps them (R100).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/format/log_record.h"
#include "engine/format/tree_key.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// A file of a replay, for its division.
struct SizedFile {
  uint32_t node = 0;  // the process that wrote it
  uint64_t bytes = 0;
};

/// Returns the process of each file, a number less than `count`. A process reads its own files, as
/// long as it has at most its part of all bytes. The others are given, the largest first, to the
/// process with the fewest bytes. Files are not split. All processes compute the same result.
/// REQUIRES: `count` is at least 1.
std::vector<uint32_t> divide_files(std::span<const SizedFile> files, uint32_t count);

/// The part of the records whose updates, appends and blocked versions one process keeps. Those of
/// a record are all in the same part.
struct ReplayShare {
  uint32_t number = 0;
  uint32_t count = 1;
  uint64_t last_epoch = 0;  // of all records; counts only if there are several parts

  /// Returns the number of the part that has the record. The records of a heap are divided by
  /// epochs, so that each part is a range in the order of VIDs. Other records are divided by their
  /// keys, so that most records of a page are in one part.
  uint32_t owner_of(const LogRecord& record, const StorageControl& storage) const;
  bool has(const LogRecord& record, const StorageControl& storage) const {
    return count == 1 || owner_of(record, storage) == number;
  }
};

/// Returns the index that the key names, or nothing if the storage is no array with this record.
std::optional<uint64_t> array_index_in(const StorageControl& storage, Bytes key);

}  // namespace atolldb
