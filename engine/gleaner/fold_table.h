// Fold table of a mapper, for a storage whose records change often. Of records that cover each
// other (R35) it keeps only the newest. It is larger than a bucket. RepeatSampler finds such
// storages.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/gleaner/gleaned_record.h"
#include "shared/base/check.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

/// Returns a hash of the first 16 bytes of a key.
inline uint64_t hash_of(const SortKey& key) {
  uint64_t hash = key.first * 0x9e3779b97f4a7c15u;
  hash = (hash ^ hash >> 32 ^ key.second) * 0xc2b2ae3d27d4eb4fu;
  return hash ^ hash >> 29;
}

/// Records of one storage in gleaned form, with an index by key. An added record replaces the
/// indexed record of its key if it covers that record and has the same length. It is elided if the
/// indexed record covers it. Other records are added at the end.
/// Thread: one.
class FoldTable {
 public:
  /// Allocates a table for `bytes` of records: a multiple of 8, at least kMaxGleanedBytes.
  explicit FoldTable(uint64_t bytes);

  /// Returns the maximum number of records in a table, however short they are.
  static constexpr uint64_t max_records(uint64_t bytes) { return bytes / 48; }
  /// Returns the memory of a table in bytes.
  static constexpr uint64_t footprint(uint64_t bytes) {
    return bytes + slots(bytes) * sizeof(uint32_t);
  }

  bool is_empty() const { return count_ == 0; }
  bool has_room(uint32_t bytes) const { return used_ + bytes <= bytes_ && count_ < max_count_; }
  uint64_t count() const { return count_; }    // records in the table
  uint64_t folded() const { return folded_; }  // records that were elided since `clear`

  /// Load into the cache what `add` will need. Call prefetch_slot first, and prefetch_record when
  /// the slot of the index is in the cache.
  void prefetch_slot(uint64_t hash) const { __builtin_prefetch(&index_[hash & mask_]); }
  void prefetch_record(uint64_t hash) const {
    const uint32_t place = index_[hash & mask_];
    if (place == 0) return;
    const auto* record = reinterpret_cast<const std::byte*>(at(place));
    __builtin_prefetch(record, 1);
    __builtin_prefetch(record + sizeof(LogRecord) + 16, 1);  // often in another cache line
  }

  /// Adds a record that is no append. `hash`: equal for equal keys.
  /// REQUIRES: has_room(gleaned_bytes(record)).
  void add(const LogRecord& record, StorageType type, uint64_t hash);

  /// Returns the keys of the next records, in the order of addition, up to the size of `room`.
  /// After the last record it returns no key, and the caller calls `clear`. The records are valid
  /// until `clear`.
  std::span<SortKey> read(std::span<SortKey> room);
  void clear();

 private:
  static constexpr uint64_t slots(uint64_t bytes) {
    return std::bit_ceil(max_records(bytes) + max_records(bytes) / 2);  // at most 2/3 are in use
  }
  LogRecord* at(uint32_t place) const {
    return reinterpret_cast<LogRecord*>(records_ + (uint64_t{place} - 1) * 8);
  }
  /// Elides `added` or `old`, a record of the same key, if the other one covers it. Returns false
  /// if both are kept.
  static bool fold(LogRecord& old, const LogRecord& added);

  uint64_t bytes_;
  uint64_t max_count_;
  uint64_t mask_;
  uint64_t used_ = 0;
  uint64_t count_ = 0;
  uint64_t folded_ = 0;
  uint64_t read_ = 0;  // bytes that `read` has returned
  IoBuffer memory_;    // the index, then the records; in huge pages, because accesses are random
  uint32_t* index_;    // by hash: place of a record (its offset / 8 + 1); 0: free
  std::byte* records_;
};

/// Counts records whose keys were seen before, in a sample of the keys of all storages. It
/// remembers about as many keys as a table has room for.
/// Thread: one.
class RepeatSampler {
 public:
  /// Returns an estimate of how many of these records have keys that were seen before.
  uint64_t count_repeats(uint32_t storage_id, std::span<const SortKey> keys);

 private:
  static constexpr uint64_t kKeysPerSample = 64;
  std::array<uint32_t, 8192> seen_ = {};  // tags of sampled keys, by their hashes
};

}  // namespace atolldb
