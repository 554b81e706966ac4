// Hash storage: a map from byte strings to byte strings for point operations, without an order. It
// is a Master-tree whose keys begin with their hash; see README.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/hash/hash_key.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "shared/base/check.h"

namespace atolldb {

/// Reads and writes the records of a hash storage. A light handle that may be copied freely. The
/// operations have the contracts of MasterTree. Keys longer than kMaxKeyBytes give key_too_long.
class Hash {
 public:
  static constexpr uint32_t kMaxKeyBytes = HashKey::kMaxKeyBytes;
  static constexpr uint32_t kMaxPayloadBytes = MasterTree::kMaxPayloadBytes;

  /// REQUIRES: `storage` is of type hash and ready.
  explicit Hash(StorageControl& storage) : tree_(storage) {}

  Status get(Transaction& txn, Bytes key, void* out, uint32_t capacity,
             uint32_t& payload_bytes) const {
    return tree_.get(txn, HashKey(key).stored(), out, capacity, payload_bytes);
  }
  Status get_range(Transaction& txn, Bytes key, uint32_t offset, uint32_t count, void* out) const {
    return tree_.get_range(txn, HashKey(key).stored(), offset, count, out);
  }
  Status get_for_update(Transaction& txn, Bytes key, void* out, uint32_t capacity,
                        uint32_t& payload_bytes, RecordRef& ref) const {
    return tree_.get_for_update(txn, HashKey(key).stored(), out, capacity, payload_bytes, ref);
  }
  Status get_many(Transaction& txn, std::span<const Bytes> keys, void* out, uint32_t stride,
                  std::span<Status> results) const {
    if (results.size() < keys.size()) return Status::invalid_argument;
    auto* to = static_cast<std::byte*>(out);
    return in_batches(keys, [&](size_t first, std::span<const Bytes> stored) {
      return tree_.get_many(txn, stored, to + first * stride, stride, results.subspan(first));
    });
  }
  Status insert(Transaction& txn, Bytes key, Bytes payload) const {
    return tree_.insert(txn, HashKey(key).stored(), payload);
  }
  Status upsert(Transaction& txn, Bytes key, Bytes payload) const {
    return tree_.upsert(txn, HashKey(key).stored(), payload);
  }
  Status update(Transaction& txn, Bytes key, Bytes payload) const {
    return tree_.update(txn, HashKey(key).stored(), payload);
  }
  Status update_range(Transaction& txn, Bytes key, uint32_t offset, Bytes bytes) const {
    return tree_.update_range(txn, HashKey(key).stored(), offset, bytes);
  }
  Status update_range(Transaction& txn, const RecordRef& ref, Bytes key, uint32_t offset,
                      Bytes bytes) const {
    return tree_.update_range(txn, ref, HashKey(key).stored(), offset, bytes);
  }
  Status increment(Transaction& txn, Bytes key, uint32_t offset, IncrementType type,
                   const void* delta) const {
    return tree_.increment(txn, HashKey(key).stored(), offset, type, delta);
  }
  Status erase(Transaction& txn, Bytes key) const {
    return tree_.erase(txn, HashKey(key).stored());
  }
  Status erase(Transaction& txn, const RecordRef& ref, Bytes key) const {
    return tree_.erase(txn, ref, HashKey(key).stored());
  }
  /// Prefetches what `get` of these keys will touch. See MasterTree::prefetch.
  void prefetch(Transaction& txn, std::span<const Bytes> keys) const {
    static_cast<void>(in_batches(keys, [&](size_t, std::span<const Bytes> stored) {
      tree_.prefetch(txn, stored);
      return Status::ok;
    }));
  }

  StorageControl& storage() const { return tree_.storage(); }
  /// The tree whose keys are stored forms (HashKey).
  const MasterTree& tree() const { return tree_; }

 private:
  static constexpr size_t kBatch = 16;  // as many as MasterTree::prefetch handles at once

  /// Calls `use(first, stored)` for batches of keys, until it returns an abort status.
  template <typename Use>
  static Status in_batches(std::span<const Bytes> keys, Use&& use) {
    std::array<HashKey, kBatch> hashed;
    std::array<Bytes, kBatch> stored;
    for (size_t first = 0; first < keys.size(); first += kBatch) {
      const size_t count = std::min(kBatch, keys.size() - first);
      for (size_t i = 0; i < count; ++i) {
        hashed[i].set(keys[first + i]);
        stored[i] = hashed[i].stored();
        DCHECK(stored[i].size() >= kHashBytes);
      }
      const Status status = use(first, std::span<const Bytes>(stored).first(count));
      if (is_abort(status)) return status;
    }
    return Status::ok;
  }

  MasterTree tree_;
};

/// Cursor over all records of a hash storage, in the order of their hashes. It visits each record
/// once, also while the storage grows. Has the contracts of MasterTreeCursor.
class HashCursor {
 public:
  HashCursor(const Hash& hash, Transaction& txn) : cursor_(hash.tree(), txn, ScanRange{}, true) {}

  Status next() { return cursor_.next(); }
  /// Returns the key of the current record. REQUIRES: `next` has returned ok.
  OriginalKey key() const { return OriginalKey(cursor_.key()); }
  uint32_t payload_bytes() const { return cursor_.payload_bytes(); }
  Status get(void* out, uint32_t capacity) { return cursor_.get(out, capacity); }

 private:
  MasterTreeCursor cursor_;
};

}  // namespace atolldb
