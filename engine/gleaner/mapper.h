// A mapper reads streams of the log and collects their records in buckets by storage. It sorts,
// compacts and partitions full buckets and ships them to the reducers. Source: [FOEDUS15] section
// 7.3; rules R29, R35, R36.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/gleaner/exchange.h"
#include "engine/gleaner/fold_table.h"
#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/key_sorter.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/log/log_reader.h"
#include "shared/base/check.h"
#include "shared/process/work_clock.h"

namespace atolldb {

/// A bucket: the mapper's records of one storage, collected until they are sorted and shipped.
class Bucket {
 public:
  /// Allocates room for `bytes` of records, and for one key per 48 bytes.
  explicit Bucket(uint64_t bytes)
      : bytes_(bytes),
        records_(std::make_unique_for_overwrite<std::byte[]>(bytes)),
        keys_(std::make_unique_for_overwrite<SortKey[]>(max_records(bytes))) {
    CHECK(bytes % 8 == 0 && max_records(bytes) > 0);
  }

  static constexpr uint64_t max_records(uint64_t bytes) { return bytes / 48; }
  /// Returns the memory of a bucket in bytes.
  static constexpr uint64_t footprint(uint64_t bytes) {
    return bytes + max_records(bytes) * sizeof(SortKey);
  }

  bool is_empty() const { return count_ == 0; }
  bool has_room(uint32_t bytes) const {
    return used_ + bytes <= bytes_ && count_ < max_records(bytes_);
  }
  uint64_t used_bytes() const { return used_; }

  /// REQUIRES: has_room(gleaned_bytes(record)).
  void add(const LogRecord& record, StorageType type, const LogBlockHeader& header) {
    DCHECK(has_room(gleaned_bytes(record)));
    SortKey& key = keys_[count_++];
    if (type == StorageType::sequential) {
      write_gleaned_append(record, header, records_.get() + used_, key);
    } else {
      key = write_gleaned(record, type, records_.get() + used_);
    }
    DCHECK(key.record->length == gleaned_bytes(record));
    used_ += gleaned_bytes(record);
  }
  /// Returns the keys in arrival order. The caller may sort them. Valid until clear().
  std::span<SortKey> keys() { return {keys_.get(), count_}; }
  void clear() { used_ = count_ = 0; }

  uint32_t storage = 0;  // index in Mapper::storages_, set by the mapper

 private:
  uint64_t bytes_;
  uint64_t used_ = 0;
  uint64_t count_ = 0;
  std::unique_ptr<std::byte[]> records_;
  std::unique_ptr<SortKey[]> keys_;
};

struct MapperSettings {
  /// Bytes of records per bucket, at least kMinBucketBytes. A larger bucket leaves the core's
  /// caches before it is sorted. A smaller one leaves more merging to the reducer.
  uint64_t bucket_bytes = uint64_t{1} << 19;
  /// Bytes for all buckets. Each takes Bucket::footprint(bucket_bytes), and there is at least one.
  /// When all are in use, the fullest is shipped early. The mapper needs more memory on top:
  /// KeySorter::footprint for sorting one bucket, and 2 MiB for the reader.
  uint64_t memory_bytes = uint64_t{64} << 20;
  /// Bytes of records per fold table, at least kMinBucketBytes. The mapper allocates a table, of
  /// FoldTable::footprint(fold_bytes), when a storage needs it.
  uint64_t fold_bytes = uint64_t{16} << 20;
  /// Maximum number of fold tables. 0: no folding.
  uint32_t max_fold_tables = 2;
  /// Number of records of a storage after which the mapper decides whether the storage gets a fold
  /// table.
  uint64_t fold_sample_records = 1 << 15;
  /// Called after about each kReportBytes of log that were read, without an open reservation in an
  /// inbox. May block, to slow the mapper down. Empty: nothing to do.
  std::function<void(uint64_t bytes)> on_read = {};
  /// Ranges whose records are left out, in the order of do_ascend. They outlive the mapper.
  std::span<const CapturedRange> captured = {};
  /// Counts the processor time of the mapper's thread. Null: it is not counted.
  WorkClock* clock = nullptr;

  static constexpr uint64_t kMinBucketBytes = 8192;
  static constexpr uint64_t kReportBytes = uint64_t{1} << 20;
};

/// Writer: the mapper's thread. All accesses are relaxed: the values are for progress displays.
struct MapperProgress {
  std::atomic<uint64_t> bytes_read{0};    // bytes of log files that were read, not skipped
  std::atomic<uint64_t> records_read{0};  // records of the plan's epochs and storages
  std::atomic<uint64_t> records_shipped{0};
  std::atomic<uint64_t> bytes_shipped{0};
  std::atomic<uint64_t> records_elided{0};    // redundant records that were elided (R35)
  std::atomic<uint64_t> records_folded{0};    // part of records_elided: elided in a fold table
  std::atomic<uint64_t> records_captured{0};  // records of captured ranges, left out (R75)
  std::atomic<uint64_t> messages{0};
};

/// Thread: one.
class Mapper {
 public:
  /// Storages with smaller ids are found by one load, others by a binary search.
  static constexpr uint32_t kMaxDirectId = uint32_t{1} << 16;

  /// Creates a mapper. `inboxes`: in the order of plan.reducers; they have begun run plan.snapshot.
  /// All arguments outlive the mapper.
  /// Error: code failed if the plan contradicts itself, for example if a partition names a reducer
  /// that the plan lacks.
  static Result<std::unique_ptr<Mapper>> create(FileSystem& file_system, const SnapshotPlan& plan,
                                                const PlannedMapper& task,
                                                std::span<ReducerInbox* const> inboxes,
                                                MapperSettings settings = {});

  /// Reads all streams, ships all records, and tells all reducers that it has finished. An error
  /// aborts the run in all inboxes.
  /// Errors: code corruption with file, offset and reason, if a stream ends before its last epoch
  /// is closed; those of the file system; code failed if another thread aborted the run.
  Result<void> run();

  const MapperProgress& progress() const { return progress_; }

 private:
  /// A storage of the plan.
  struct Storage {
    const PlannedStorage* plan;
    std::vector<ReducerInbox*> owners;             // inbox of the owner of each partition
    Bucket* bucket = nullptr;                      // its current bucket; null: none
    std::span<const CapturedRange> captured = {};  // captured ranges of this storage
    size_t last_captured = 0;                      // index of the range that was found last
    std::unique_ptr<FoldTable> table = nullptr;    // gets all its records; null: the bucket does
    /// True: the storage may have a fold table. False: its records are appends, its table elided
    /// too few records, or there are no fold tables.
    bool may_fold = false;
    uint64_t sampled = 0;   // records in its buckets since the last decision about a table
    uint64_t repeated = 0;  // estimate: how many of these only a table would have elided
  };
  /// A record of the current block that belongs to a fold table. It is added to the table at the
  /// end of the block. Until then, the memory that it needs is loaded into the cache.
  struct Pending {
    Storage* storage;
    const LogRecord* record;
    uint64_t hash;
  };

  Mapper(FileSystem& file_system, const SnapshotPlan& plan, const PlannedMapper& task,
         std::span<ReducerInbox* const> inboxes, MapperSettings settings);

  Result<void> add_storage(const PlannedStorage& storage);
  Result<void> map_all();
  Result<void> read(const PlannedStream& stream);
  void report_read();
  Result<void> take_block(const LogBlock& block, const LogReader& reader);
  Result<Bucket*> room_for(Storage& storage, uint32_t bytes);
  Result<Bucket*> free_bucket();
  Storage* find(uint32_t storage_id);
  static bool is_captured(Storage& storage, const LogRecord& record);
  /// Counts the processor time since the last call for this phase.
  void count_time(SnapshotWork work) {
    if (settings_.clock != nullptr) settings_.clock->charge(work);
  }
  Result<void> ship(Bucket& bucket);
  Result<void> ship(Storage& storage);
  Result<std::span<const SortKey>> ship_keys(const Storage& storage, std::span<SortKey> keys);
  void consider_folding(Storage& storage, uint64_t records, std::span<const SortKey> kept);
  void fold_later(Storage& storage, const LogRecord& record);
  Result<void> fold_pending();
  Result<void> ship_part(std::span<const SortKey> part, uint32_t storage_id, ReducerInbox& inbox);
  Result<void> send(std::span<const SortKey> part, uint64_t bytes, uint32_t storage_id,
                    ReducerInbox& inbox);

  FileSystem* file_system_;
  const SnapshotPlan* plan_;
  const PlannedMapper* task_;
  std::span<ReducerInbox* const> inboxes_;
  MapperSettings settings_;
  std::vector<Storage> storages_;  // ascending ids
  std::vector<uint32_t> places_;   // indexes in `storages_` by id, for ids below kMaxDirectId
  std::vector<std::unique_ptr<Bucket>> buckets_;
  uint64_t max_buckets_;
  KeySorter sorter_;
  RepeatSampler sampler_;
  uint32_t fold_tables_ = 0;
  std::vector<Pending> pending_;            // records of the current block, in its order
  std::unique_ptr<SortKey[]> folded_keys_;  // room for a part of a table; null: no table was made
  uint64_t unreported_bytes_ = 0;           // read since the last call of on_read
  MapperProgress progress_;
};

}  // namespace atolldb
