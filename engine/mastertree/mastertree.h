// Master-tree storage: ordered map from byte strings to byte strings (foedus.txt section 8:
// Masstree's 64-bit slices, Foster B-tree's single incoming pointer, foster twins).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/mastertree/key.h"
#include "engine/storage_handle.h"
#include "engine/transaction/transaction.h"
#include "shared/memory/control_layout.h"
#include "shared/status.h"

namespace atolldb {

/// A light handle; copy it freely. Every call may return an abort status; one that writes,
/// read_only_transaction. key_too_long past kMaxKeyBytes, payload_too_long past kMaxPayloadBytes.
class MasterTree {
 public:
  static constexpr uint32_t kMaxKeyBytes = kMaxTreeKeyBytes;
  static constexpr uint32_t kMaxPayloadBytes = 2048;

  /// `storage` must be of type mastertree and ready.
  explicit MasterTree(StorageControl& storage) : storage_(storage) {}

  /// Copies at most `capacity` bytes of the payload; `payload_bytes` = its whole length.
  Status get(Transaction& txn, Bytes key, void* out, uint32_t capacity,
             uint32_t& payload_bytes) const;
  /// The same, and the record's version: without a pending write of its own.
  Status get(Transaction& txn, Bytes key, void* out, uint32_t capacity, uint32_t& payload_bytes,
             Vid& seen) const;
  /// Reads bytes [offset, offset+count); out_of_range when the payload is shorter.
  Status get_range(Transaction& txn, Bytes key, uint32_t offset, uint32_t count, void* out) const;
  /// Like get, and hands out the place for `update` and `erase`.
  Status get_for_update(Transaction& txn, Bytes key, void* out, uint32_t capacity,
                        uint32_t& payload_bytes, RecordRef& ref) const;
  /// One outcome per key in `results`; payload i at `out + i * stride`, at most `stride` bytes.
  Status get_many(Transaction& txn, std::span<const Bytes> keys, void* out, uint32_t stride,
                  std::span<Status> results) const;

  Status insert(Transaction& txn, Bytes key, Bytes payload) const;  // already_exists
  /// The same for several records, one after the other. Cheaper for keys that ascend and go behind
  /// all others of their page: they share one page lock. Ends at the first answer but ok
  /// (already_exists ...): the records before that stay planned. invalid_argument when the sizes
  /// differ.
  Status insert_many(Transaction& txn, std::span<const Bytes> keys,
                     std::span<const Bytes> payloads) const;
  Status upsert(Transaction& txn, Bytes key, Bytes payload) const;
  Status update(Transaction& txn, Bytes key, Bytes payload) const;  // not_found; whole payload
  /// Overwrites bytes [offset, offset+bytes.size()): not_found; out_of_range past the payload.
  Status update_range(Transaction& txn, Bytes key, uint32_t offset, Bytes bytes) const;
  Status update_range(Transaction& txn, const RecordRef& ref, Bytes key, uint32_t offset,
                      Bytes bytes) const;
  /// Adds `*delta`, increment_bytes(type) bytes, at the commit: not_found; out_of_range past the
  /// payload.
  Status increment(Transaction& txn, Bytes key, uint32_t offset, IncrementType type,
                   const void* delta) const;
  Status erase(Transaction& txn, Bytes key) const;  // not_found
  Status erase(Transaction& txn, const RecordRef& ref, Bytes key) const;

  /// Starts to load what `get` of these keys, or scans of `records` records from them, will touch,
  /// in this transaction or in the next ones of this worker. Only a hint: registers nothing. Best
  /// with some 16 keys: their cache misses overlap.
  void prefetch(Transaction& txn, std::span<const Bytes> keys, uint32_t records = 1) const;

  StorageControl& storage() const { return storage_.control(); }
  const StorageHandle& handle() const { return storage_; }

 private:
  StorageHandle storage_;
};

/// Keys that order like unsigned integers: big-endian bytes of `value`.
inline std::array<std::byte, 8> ordered_key(uint64_t value) {
  std::array<std::byte, 8> key{};
  const uint64_t swapped = __builtin_bswap64(value);
  __builtin_memcpy(key.data(), &swapped, 8);
  return key;
}

}  // namespace atolldb
