// Array storage: integer keys 0 .. record_count-1 and records of fixed size. Every record always
// exists and is zero-filled until it is written, so there are no phantoms. The pages form a radix
// tree of dual pointers. A record without a volatile page is read from its snapshot page.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/transaction/storage_handle.h"
#include "engine/transaction/transaction.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

struct ArrayInterior;
class ColdBatch;

using Bytes8 = std::array<std::byte, 8>;

/// Handle of an array storage, through which transactions read and write its records. It is cheap
/// to copy. Every call may return an abort status. Every writing call may return
/// read_only_transaction.
class Array {
 public:
  /// REQUIRES: `storage` is ready and of type array.
  explicit Array(StorageControl& storage);

  uint64_t record_count() const { return record_count_; }
  uint32_t payload_bytes() const { return payload_bytes_; }
  const StorageHandle& handle() const { return storage_; }

  /// Reads bytes [offset, offset+count) of record `index`. Returns out_of_range for an index past
  /// the last record, or for bytes past its payload.
  Status get(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count, void* out) const;
  Status get(Transaction& txn, uint64_t index, void* out) const {
    return get(txn, index, 0, payload_bytes_, out);
  }
  /// Reads a whole record. `seen` gets its committed version, or 0 if it was never written. A
  /// pending write of this transaction changes `out`, but not `seen`.
  Status get(Transaction& txn, uint64_t index, void* out, Vid& seen) const;
  /// Reads a record that the transaction will write (R5), and sets `ref` to its place, for
  /// `update`. If the transaction reads a snapshot, `ref` names no volatile record, and `update`
  /// looks the record up again.
  Status get_for_update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                        void* out, RecordRef& ref) const;
  /// Reads whole records `indexes[i]` to `out + i * payload_bytes()`, with overlapping cache
  /// misses. REQUIRES: `out` has indexes.size() * payload_bytes() bytes. Stops with out_of_range at
  /// an index past the end; the records before it are copied.
  Status get_many(Transaction& txn, std::span<const uint64_t> indexes, void* out) const;

  /// Looks up records without reading them, for the calls that take a RecordRef. The cache misses
  /// of the look-ups overlap, and so do the reads of missing snapshot pages. Each record is looked
  /// up once, however often it is used. For an
  /// index past the end it stores a ref for which `get` returns out_of_range. Returns
  /// invalid_argument if `refs` is shorter than `indexes`.
  Status find_many(Transaction& txn, std::span<const uint64_t> indexes,
                   std::span<RecordRef> refs) const {
    return find_many(txn, indexes, refs, false);
  }
  /// Does the same as `find_many`, for records that the transaction will write (R5).
  Status find_many_for_update(Transaction& txn, std::span<const uint64_t> indexes,
                              std::span<RecordRef> refs) const {
    return find_many(txn, indexes, refs, true);
  }
  /// Prefetches the cache lines that `get` of these records will touch, and reads their missing
  /// snapshot pages at the same time. Waits for these. This is a hint: it registers nothing.
  void prefetch(Transaction& txn, std::span<const uint64_t> indexes) const;
  /// Prefetches cache lines for `get` of bytes [offset, offset+count) of these records. Ignores
  /// records without a volatile page. May be called for the records of the worker's next
  /// transaction, while `txn` is active, because it never waits for a device.
  void prefetch(Transaction& txn, std::span<const uint64_t> indexes, uint32_t offset,
                uint32_t count) const;
  /// Adds the snapshot pages of these records to a batch. Omits records that have a volatile page,
  /// and those past the end. Does nothing unless the batch is wanted. Registers nothing.
  void add_cold(Transaction& txn, std::span<const uint64_t> indexes, ColdBatch& batch) const;
  /// Prefetches bytes [offset, offset+count) of the record that `ref` names.
  static void prefetch(const RecordRef& ref, uint32_t offset, uint32_t count);
  /// Reads a record that a call with a RecordRef has found. A record that was never written reads
  /// as zeros. Returns out_of_range for bytes past the payload, and for the ref of an index past
  /// the end.
  Status get(Transaction& txn, const RecordRef& ref, uint32_t offset, uint32_t count,
             void* out) const {
    if (offset + uint64_t{count} > ref.payload_bytes) return Status::out_of_range;
    const Status status = txn.check();
    if (status != Status::ok) return status;
    if (ref.record != nullptr) [[likely]]
      return txn.read_existing(ref, offset, count, out);
    return get_cold(txn, ref, offset, count, out);
  }

  /// Overwrites bytes of a record without reading it. So two serializable transactions that only
  /// write the record do not conflict. Returns out_of_range for an index past the last record, or
  /// for bytes past its payload.
  Status update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                const void* bytes) const;
  /// Does the same as `update` by index. `ref`: the place of record `index`, from get_for_update or
  /// find_many_for_update. A ref from find_many is permitted, too, if the record has a volatile
  /// page. If it has none, a serializable transaction gets invalid_argument.
  Status update(Transaction& txn, const RecordRef& ref, uint64_t index, uint32_t offset,
                uint32_t count, const void* bytes) const;
  /// Adds `*delta`, which has increment_bytes(type) bytes, to the number at `offset` of the record.
  /// In a serializable transaction the commit adds it, and this call does not read the record.
  /// Errors: as for `update`; invalid_argument if `type` is not a valid type.
  Status increment(Transaction& txn, uint64_t index, uint32_t offset, IncrementType type,
                   const void* delta) const;

  static constexpr uint32_t kMaxPayloadBytes = 2000;
  static constexpr uint64_t kMaxRecords = uint64_t{1} << 40;

 private:
  friend class ArrayCursor;

  static constexpr uint32_t kMaxLevels = 32;  // enough for kMaxRecords in stress builds, too
  static constexpr size_t kBatch = 16;        // number of look-ups whose cache misses overlap

  using Children = std::array<uint64_t, kMaxLevels>;  // number of the child on the path, by level
  using Whole = std::array<std::byte, kMaxPayloadBytes>;  // a whole record

  /// Finds record `index`. Installs missing volatile pages if `create` is true, or if the
  /// transaction installs on read (R5). If a page is missing and is not installed, registers the
  /// null pointer (R4) and leaves `ref.record` null. The record is then in the page
  /// `ref.snapshot()`, or all zeros if that is null.
  Status find(Transaction& txn, uint64_t index, bool create, RecordRef& ref) const;
  /// Slow path of `find`, for a path with null words or with more than three levels.
  Status find_by_descent(Transaction& txn, uint64_t index, bool create, RecordRef& ref) const;
  bool has_lost_write(Transaction& txn, uint64_t index) const;
  Status descend_once(Transaction& txn, uint64_t index, const Children& child, uint32_t slot,
                      bool create, RecordRef& ref, bool& is_frozen) const;
  uint32_t path_to(uint64_t index, Children& child) const;
  /// Does the same as `find`, for a transaction that reads a snapshot (R18).
  Status find_in_snapshot(Transaction& txn, uint64_t index, RecordRef& ref) const;
  Status read_whole(Transaction& txn, uint64_t index, Whole& record) const;
  Status write_whole(Transaction& txn, uint64_t index, const Whole& record) const;
  static Status descend_in_snapshot(WorkerContext& worker, uint32_t level, const Children& child,
                                    SnapshotPointer& pointer);
  /// Continues a look-up in snapshot pages, from the page that `pointer` names.
  Status find_cold(Transaction& txn, SnapshotPointer pointer, uint32_t level, const Children& child,
                   uint32_t slot, RecordRef& ref) const;
  /// Reads a record that has no volatile page: from its snapshot page, or from an own write.
  static Status get_cold(Transaction& txn, const RecordRef& ref, uint32_t offset, uint32_t count,
                         void* out, Vid* seen = nullptr);
  static Status get_own(Transaction& txn, const RecordRef& ref, uint32_t offset, uint32_t count,
                        void* out);
  Status find_many(Transaction& txn, std::span<const uint64_t> indexes, std::span<RecordRef> refs,
                   bool create) const;
  size_t read_cold(Transaction& txn, std::span<const uint64_t> indexes) const;
  /// Returns the snapshot page of leaf number `leaf`, without reading it. Returns null if the leaf
  /// has a volatile page, or if it cannot be found. Registers nothing.
  SnapshotPointer cold_leaf(Transaction& txn, uint64_t leaf) const;

  /// The place of a record: the pointer to its leaf, and its slot in that leaf. `leaf` is null for
  /// an index past the last record, for a missing page on the path, and for more than three levels.
  struct Place {
    const DualPointer* leaf;
    uint32_t slot;
  };
  // `pages` resolves pointers to pages: a WorkerContext, or a PageCounter for a batch.
  template <typename Pages, typename Use>
  Status for_each_place(Pages& pages, std::span<const uint64_t> indexes, Use&& use) const;
  template <typename Pages>
  Place place_of(Pages& pages, const ArrayInterior* top, uint64_t index) const;
  template <typename Pages>
  ArrayInterior* top_page(Pages& pages) const;
  uint64_t leaf_of(uint64_t index) const;
  /// Returns the ref of a record in the leaf page that `leaf` leads to. Counts a use of that page.
  RecordRef resolve_and_count(WorkerContext& worker, VolatilePointer leaf, uint32_t slot,
                              uint64_t index) const;
  /// Returns the ref of a record. `page`: the leaf page to which `leaf` leads.
  RecordRef ref_of(VolatilePointer leaf, PageHeader* page, uint32_t slot, uint64_t index) const;

  StorageHandle storage_;
  uint64_t record_count_;
  uint32_t payload_bytes_;
  uint32_t record_bytes_;  // head + payload, a multiple of 8
  uint32_t records_per_leaf_;
  uint32_t levels_;           // number of levels; 1: the root is a leaf
  uint64_t leaf_reciprocal_;  // 2^64 / records_per_leaf_, rounded up: division by multiplication
};

/// A cursor over the records [first, last] in index order, forward or backward. If a snapshot page
/// of the range is missing in the cache, the cursor reads it and the next ones at the same time: up
/// to the end of the range if that is near, else up to scan_distance.
class ArrayCursor {
 public:
  ArrayCursor(const Array& array, Transaction& txn, uint64_t first, uint64_t last, bool forward);
  /// Copies the next record to `out`, and its number to `index`. Returns end_of_scan after the last
  /// record.
  Status next(uint64_t& index, void* out);

 private:
  void enter_leaf();

  Array array_;
  Transaction* txn_;
  uint64_t next_;
  uint64_t left_;
  bool forward_;
  uint64_t left_in_leaf_ = 0;  // records until the scan reaches the next leaf
  uint32_t cold_leaves_ = 0;   // leaves without a volatile page that the scan has reached
};

}  // namespace atolldb
