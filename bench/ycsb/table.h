// Access to the records of the benchmark, which are in an array or a Master-tree, and to the
// control storage. The latter holds the flag that ends a run, and each worker's insert count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/job/storage_spec.h"
#include "bench/ycsb/job_input.h"
#include "engine/mastertree/cursor.h"
#include "shared/base/error.h"

namespace atolldb::ycsb {

using bench::StoredId;

inline constexpr const char* kRecordsStorage = "ycsb_records";
inline constexpr const char* kControlStorage = "ycsb_control";

std::vector<bench::StorageSpec> storage_specs(const JobInput& input, uint32_t nodes);

/// Record 0 of the control storage is a bench::StopRow. Each worker also has one LaneRow, on its
/// own leaf page.
struct LaneRow {
  uint64_t exists;    // 1 once the load has begun
  uint64_t inserted;  // number of committed inserts of this worker; lags a little
};
inline constexpr uint32_t kControlBytes = 64;  // each record has its own cache line
inline constexpr uint32_t kMaxLanes = 250;     // workers of a node

constexpr uint64_t lane_row_at(uint32_t node, uint32_t worker) {
  return (1 + uint64_t{node} * kMaxLanes + worker) * bench::records_per_leaf(kControlBytes);
}

/// Findings of the operations, for the verification.
struct Observed {
  uint64_t torn = 0;     // number of torn records among those read
  uint64_t scanned = 0;  // records that scans returned
};

/// Handles on the storages, with a buffer for one record. Process-local; thread: one worker.
class Table {
 public:
  /// Errors: usage if a node has no record; failed if a storage is missing or has other sizes.
  static Result<Table> open(ControlSegment& control, const JobInput& input, uint32_t nodes);

  const Keyspace& keyspace() const { return keyspace_; }
  const MasterTree& tree() const { return tree_; }
  bool is_hash() const { return is_hash_; }
  const Array& array() const { return array_; }
  const Array& control() const { return control_; }

  /// The operations of a transaction. Those with `observed` check what they read, and count their
  /// findings in it.
  Status read(Transaction& txn, uint64_t id, Observed& observed);
  /// Increments the update count of the field and writes the whole field.
  Status update(Transaction& txn, uint64_t id, uint32_t field);
  /// Overwrites the record without reading it. All its update counts are 0 then. REQUIRES: the
  /// records are in a Master-tree.
  Status overwrite(Transaction& txn, uint64_t id);
  Status insert(Transaction& txn, uint64_t id);
  /// Reads `length` records from `id` on, or fewer at the end of the partition.
  Status scan(Transaction& txn, uint64_t id, uint32_t length, Observed& observed);
  /// Reads the whole record, then updates the field as `update` does.
  Status read_modify_write(Transaction& txn, uint64_t id, uint32_t field, Observed& observed);
  /// Writes a record as the load does.
  Status write_loaded(Transaction& txn, uint64_t id);

  /// Starts to load the pages and records that operations on these keys use.
  void prefetch(Transaction& txn, std::span<const uint64_t> ids);

 private:
  Table(const JobInput& input, uint32_t nodes, const Array& array, const MasterTree& tree,
        const Array& control)
      : keyspace_(input.keyspace(nodes)),
        shape_(input.shape),
        array_(array),
        tree_(tree),
        is_hash_(input.is_hash),
        control_(control) {}

  Status read_for_update(Transaction& txn, uint64_t id, uint32_t bytes, RecordRef& ref);
  Status write_field(Transaction& txn, uint64_t id, uint32_t field, const RecordRef& ref);
  /// Checks a record of `bytes` bytes that was copied to `record`.
  void check(uint64_t id, const std::byte* record, uint32_t bytes, Observed& observed) const;

  Keyspace keyspace_;
  RecordShape shape_;
  Array array_;
  MasterTree tree_;  // hash storage: with stored keys
  bool is_hash_;
  Array control_;
  // A scan copies at most this many records at once, and no more than the buffer holds.
  static constexpr size_t kScanRows = 32;
  static constexpr size_t kScanBytes = 8'000;
  static_assert(kScanBytes >= kMaxRecordBytes);
  std::array<std::byte, kMaxRecordBytes> record_;
  std::array<std::byte, kScanBytes> scanned_;
  std::array<ScanRow, kScanRows> rows_;
  std::array<std::byte, kMaxTreeKeyBytes + kScanRows * sizeof(uint64_t)> row_keys_;
};

}  // namespace atolldb::ycsb
