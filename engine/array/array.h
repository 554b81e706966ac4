// Array storage: dense integer keys 0 .. record_count-1, fixed-size records that always exist
// (zero-filled until written). A radix of dual pointers; no phantoms by construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/transaction/transaction.h"
#include "shared/memory/control_layout.h"
#include "shared/status.h"

namespace atolldb {

using Bytes8 = std::array<std::byte, 8>;

/// A light handle; copy it freely. Every call may return an abort status.
class Array {
 public:
  /// `storage` must be of type array and ready.
  explicit Array(StorageControl& storage);

  uint64_t record_count() const { return record_count_; }
  uint32_t payload_bytes() const { return payload_bytes_; }

  /// Reads bytes [offset, offset+count) of record `index`. out_of_range past the end.
  Status get(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count, void* out) const;
  Status get(Transaction& txn, uint64_t index, void* out) const {
    return get(txn, index, 0, payload_bytes_, out);
  }
  /// Reads a record that is going to be written (R5) and hands out its place for `update`.
  Status get_for_update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                        void* out, RecordRef& ref) const;
  /// Reads whole records `indexes[i]` to `out + i * payload_bytes()`, overlapping cache misses.
  Status get_many(Transaction& txn, std::span<const uint64_t> indexes, void* out) const;

  /// Overwrites bytes; does not read, so it conflicts with nobody who only writes.
  Status update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                const void* bytes) const;
  Status update(Transaction& txn, const RecordRef& ref, uint64_t index, uint32_t offset,
                uint32_t count, const void* bytes) const;
  Status increment(Transaction& txn, uint64_t index, uint32_t offset, IncrementType type,
                   const void* delta) const;

  /// Starts to load what `get` of these records will touch.
  void prefetch(Transaction& txn, std::span<const uint64_t> indexes) const;

  static constexpr uint32_t kMaxPayloadBytes = 2000;
  static constexpr uint64_t kMaxRecords = uint64_t{1} << 40;

 private:
  static constexpr uint32_t kMaxLevels = 32;  // enough for kMaxRecords at the smallest fan-out
  static constexpr size_t kBatch = 32;        // records in flight
  static constexpr uint32_t kMaxPrefetchBytes = 512;

  /// Finds record `index`. With `create`, installs missing pages; without, a null pointer is
  /// registered (R4) and `ref.record` stays null: the record is all zeroes.
  Status locate(Transaction& txn, uint64_t index, bool create, RecordRef& ref) const;

  void prefetch_record(const RecordRef& ref) const;

  StorageControl* storage_;
  uint64_t record_count_;
  uint32_t payload_bytes_;
  uint32_t record_bytes_;  // head + payload, a multiple of 8
  uint32_t records_per_leaf_;
  uint32_t levels_;                             // 1: the root is a leaf
  std::array<uint64_t, kMaxLevels> divisor_{};  // records below one child of a page at level i + 1
};

/// Walks records by index, forward or backward, within [first, last].
class ArrayCursor {
 public:
  ArrayCursor(const Array& array, Transaction& txn, uint64_t first, uint64_t last, bool forward);
  /// Copies the next record to `out`; end_of_scan after the last.
  Status next(uint64_t& index, void* out);

 private:
  Array array_;
  Transaction* txn_;
  uint64_t next_;
  uint64_t left_;
  bool forward_;
};

}  // namespace atolldb
