// Master-tree storage: an ordered map from byte strings to byte strings. It combines Masstree's
// 64-bit slices [MASSTREE12], the Foster B-tree's single incoming pointer, and foster twins.
// Source: [FOEDUS15] section 8.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/format/tree_key.h"
#include "engine/transaction/storage_handle.h"
#include "engine/transaction/transaction.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Reads and writes the records of a Master-tree. A light handle that may be copied freely.
///
/// Every call may return an abort status. Calls that write may return read_only_transaction. Keys
/// longer than kMaxKeyBytes give key_too_long, payloads longer than kMaxPayloadBytes give
/// payload_too_long.
class MasterTree {
 public:
  static constexpr uint32_t kMaxKeyBytes = kMaxTreeKeyBytes;
  static constexpr uint32_t kMaxPayloadBytes = 2048;

  /// REQUIRES: `storage` is of type mastertree and ready.
  explicit MasterTree(StorageControl& storage) : storage_(storage) {}

  /// Copies at most `capacity` bytes of the payload. Sets `payload_bytes` to its whole length. If
  /// the result is not ok, the content of `out` is undefined: the call may have copied a record
  /// that was deleted or moved meanwhile.
  Status get(Transaction& txn, Bytes key, void* out, uint32_t capacity,
             uint32_t& payload_bytes) const;
  /// Does the same, and sets `seen` to the record's version. A pending write of this transaction
  /// does not change `seen`.
  Status get(Transaction& txn, Bytes key, void* out, uint32_t capacity, uint32_t& payload_bytes,
             Vid& seen) const;
  /// Reads bytes [offset, offset+count). Returns out_of_range if the payload is shorter.
  Status get_range(Transaction& txn, Bytes key, uint32_t offset, uint32_t count, void* out) const;
  /// Does the same as `get`, and sets `ref` to the record's place, for `update` and `erase`.
  Status get_for_update(Transaction& txn, Bytes key, void* out, uint32_t capacity,
                        uint32_t& payload_bytes, RecordRef& ref) const;
  /// Writes one outcome per key to `results`, and payload i to `out + i * stride`, at most `stride`
  /// bytes. Returns ok, or the first abort status.
  Status get_many(Transaction& txn, std::span<const Bytes> keys, void* out, uint32_t stride,
                  std::span<Status> results) const;

  Status insert(Transaction& txn, Bytes key, Bytes payload) const;  // may return already_exists
  /// Inserts several records, one after the other. Keys that ascend and follow all others of their
  /// page share one page lock. Stops at the first status other than ok, for instance
  /// already_exists, and returns it. The inserts before it remain planned. Returns invalid_argument
  /// if the sizes differ.
  Status insert_many(Transaction& txn, std::span<const Bytes> keys,
                     std::span<const Bytes> payloads) const;
  /// Inserts or replaces the record. Depends on nothing, so it need not read a record that is in a
  /// snapshot only (R82).
  Status upsert(Transaction& txn, Bytes key, Bytes payload) const;
  /// Replaces the whole payload. May return not_found.
  Status update(Transaction& txn, Bytes key, Bytes payload) const;
  /// Overwrites bytes [offset, offset+bytes.size()). Returns not_found if there is no record, or
  /// out_of_range if the bytes would end after the payload.
  Status update_range(Transaction& txn, Bytes key, uint32_t offset, Bytes bytes) const;
  Status update_range(Transaction& txn, const RecordRef& ref, Bytes key, uint32_t offset,
                      Bytes bytes) const;
  /// Adds `*delta`, which has increment_bytes(type) bytes, at the commit. Returns not_found if
  /// there is no record, or out_of_range if the number would end after the payload.
  Status increment(Transaction& txn, Bytes key, uint32_t offset, IncrementType type,
                   const void* delta) const;
  /// Adds `*delta` to the number at `offset`. If there is no record, or if it is too short, the
  /// missing bytes count as zeros, and the record gets them. So the outcome does not depend on the
  /// record, and a record that is in a snapshot only need not be read (R83).
  Status add(Transaction& txn, Bytes key, uint32_t offset, IncrementType type,
             const void* delta) const;
  Status erase(Transaction& txn, Bytes key) const;  // may return not_found
  Status erase(Transaction& txn, const RecordRef& ref, Bytes key) const;

  /// Prefetches the pages and records of `get` calls for these keys, or of scans of `records`
  /// records from these keys. The calls may follow in this transaction or in the next ones of this
  /// worker. Reads the missing snapshot pages of cold keys at the same time, and waits for them.
  /// This is a hint, and registers nothing. It works best with some 16 keys, whose cache misses
  /// then overlap.
  void prefetch(Transaction& txn, std::span<const Bytes> keys, uint32_t records = 1) const;

  StorageControl& storage() const { return storage_.control(); }
  const StorageHandle& handle() const { return storage_; }

 private:
  StorageHandle storage_;
};

/// Returns a key that orders as an unsigned integer: the big-endian bytes of `value`.
inline std::array<std::byte, 8> ordered_key(uint64_t value) {
  std::array<std::byte, 8> key{};
  const uint64_t swapped = __builtin_bswap64(value);
  __builtin_memcpy(key.data(), &swapped, 8);
  return key;
}

}  // namespace atolldb
