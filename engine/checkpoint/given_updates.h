// Updates of parts of records that one thread of a replay will give to other processes (R94, R100).
//
// The table keeps them until it is full or the files end, and drops an update if a newer one covers
// its bytes. So a record that the log has changed often is given about once, and not once for each
// change. An update that was given already is forgotten: a later one of its record is given again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "engine/checkpoint/blocked_records.h"
#include "engine/checkpoint/update_list.h"
#include "engine/format/log_record.h"
#include "engine/format/tree_key.h"
#include "engine/format/vid.h"
#include "shared/base/error.h"

namespace atolldb {

/// Thread: one at a time.
class GivenUpdates {
 public:
  /// The table is full from this size on. A block of the log may be added to it first.
  static constexpr uint64_t kMaxBytes = uint64_t{8} << 20;

  /// Returns whether the table has an update of this record that is at least as new, and covers
  /// these bytes.
  bool covers(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset, uint32_t bytes) const;
  /// Adds the bytes that a commit wrote at `offset`. Returns the effect, like PendingUpdates::add.
  Replayed add(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset, Bytes bytes);
  bool is_full() const { return bytes_ >= kMaxBytes; }
  bool is_empty() const { return records_.empty(); }
  uint64_t memory_bytes() const { return bytes_; }

  /// Calls `visit` with each update, as a record of the log, and clears the table. Ends at the
  /// first error of `visit`.
  using Visit = std::function<Result<void>(const LogRecord&)>;
  Result<void> take_all(const Visit& visit);

 private:
  /// Memory of an entry besides its name and its updates, about.
  static constexpr uint64_t kEntryBytes = 96;

  std::unordered_map<std::string, UpdateList, RecordNameHash, std::equal_to<>> records_;
  uint64_t bytes_ = 0;  // of memory, about
};

}  // namespace atolldb
