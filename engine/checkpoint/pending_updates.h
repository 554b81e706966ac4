// Updates of a part of a record, which wait for the end of a replay (R94).
//
// The log has the changed bytes of an update only. They can be applied once the newest whole
// version of the record is known, and then in the order of VIDs. Until then this table keeps them.
// An update is dropped if a newer one covers its bytes. So the table has about one entry per
// changed record, even if the log has many. If the newest file is replayed first, most updates are
// dropped by `covers`, before their record is searched for.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/checkpoint/blocked_records.h"
#include "engine/checkpoint/replayed_record.h"
#include "engine/checkpoint/update_list.h"
#include "engine/format/tree_key.h"
#include "engine/format/vid.h"
#include "shared/base/error.h"

namespace atolldb {

class PendingUpdates {
 public:
  static constexpr size_t kShards = 256;

  /// Returns whether an update is kept that is at least as new, and covers these bytes. Thread:
  /// any.
  bool covers(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset, uint32_t bytes) const;

  /// Adds the bytes that a commit wrote at `offset`. Returns the effect: `older` if a newer update
  /// covers the bytes, `overwritten` if the bytes cover an older update, else `inserted`. Thread:
  /// any.
  Replayed add(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset, Bytes bytes);

  /// Applies the updates of one shard that are newer than the records, and clears the shard.
  /// `storage_of`: returns the storage, or null for one that was dropped. Returns the number of
  /// updates that were applied. Error: code corruption if an update has no record, or ends after
  /// the record. REQUIRES: all whole versions are in place. Thread: one per shard.
  /// `blocked`: the updates of these records are kept in the shard.
  using StorageOf = std::function<StorageControl*(uint32_t storage_id)>;
  Result<uint64_t> apply(size_t shard, RecordWriter& writer, const StorageOf& storage_of,
                         const BlockedRecords& blocked);

 private:
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string, UpdateList, RecordNameHash, std::equal_to<>> records;
  };

  static size_t shard_of(std::string_view name) { return RecordNameHash{}(name) % kShards; }
  static Result<uint64_t> apply_to(const std::string& name, UpdateList& updates,
                                   RecordWriter& writer, const StorageOf& storage_of);

  std::array<Shard, kShards> shards_;
};

}  // namespace atolldb
