// A mapper: reads streams of the log, buckets their records by storage, and ships full buckets,
// sorted, compacted and partitioned, to the reducers (foedus.txt section 7.3; rules R29, R35, R36).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/gleaner/bucket.h"
#include "engine/gleaner/exchange.h"
#include "engine/gleaner/glean_plan.h"
#include "engine/gleaner/key_sorter.h"
#include "engine/log/log_reader.h"

namespace atolldb {

struct MapperSettings {
  /// Of records; from kMinBucketBytes. A larger one falls out of the core's caches before it is
  /// sorted, and a smaller one leaves more to merge to the reducer.
  uint64_t bucket_bytes = uint64_t{1} << 19;
  /// For buckets: each takes Bucket::footprint(bucket_bytes), and there is at least one. When they
  /// are all in use, the fullest is shipped early. One more bucket's bytes, what sorting one takes
  /// (KeySorter::footprint), and the reader's 2 MiB, come on top.
  uint64_t memory_bytes = uint64_t{64} << 20;

  static constexpr uint64_t kMinBucketBytes = 8192;
};

/// Writer: the mapper's thread. Relaxed: for progress displays.
struct MapperProgress {
  std::atomic<uint64_t> bytes_read{0};    // of log files, without what it skipped
  std::atomic<uint64_t> records_read{0};  // of the plan's epochs and storages
  std::atomic<uint64_t> records_shipped{0};
  std::atomic<uint64_t> bytes_shipped{0};
  std::atomic<uint64_t> records_left_out{0};  // superfluous (R35)
  std::atomic<uint64_t> messages{0};
};

/// One thread's.
class Mapper {
 public:
  /// `inboxes`: in the order of plan.reducers; they have begun run plan.snapshot. All arguments
  /// outlive the mapper. Errors: a plan whose partitions name reducers that it does not have.
  static Result<std::unique_ptr<Mapper>> create(FileSystem& file_system, const GleanPlan& plan,
                                                const GleanMapper& task,
                                                std::span<ReducerInbox* const> inboxes,
                                                MapperSettings settings = {});

  /// Reads all, ships all, says so to all reducers. After an error the run is given up everywhere.
  /// Errors: code corruption with file, offset and reason, when a stream ends before its last epoch
  /// is closed; those of the file system; the run given up by others.
  Result<void> run();

  const MapperProgress& progress() const { return progress_; }

 private:
  /// What is to be known of a storage of the plan.
  struct Storage {
    const GleanStorage* plan;
    std::vector<ReducerInbox*> owners;  // of its partitions
    Bucket* bucket = nullptr;           // the one it has now
  };

  Mapper(FileSystem& file_system, const GleanPlan& plan, const GleanMapper& task,
         std::span<ReducerInbox* const> inboxes, MapperSettings settings);

  Result<void> add_storage(const GleanStorage& storage);
  Result<void> map_all();
  Result<void> read(const GleanStream& stream);
  Result<void> take_block(const LogBlock& block, const LogReader& reader);
  Result<Bucket*> room_for(Storage& storage, uint32_t bytes);
  Result<Bucket*> free_bucket();
  Storage* find(uint32_t storage_id);
  Result<void> ship(Bucket& bucket);
  Result<void> ship_part(std::span<const SortKey> part, uint32_t storage_id, ReducerInbox& inbox);
  Result<void> send(uint32_t storage_id, uint64_t bytes, uint32_t records, ReducerInbox& inbox);

  FileSystem* file_system_;
  const GleanPlan* plan_;
  const GleanMapper* task_;
  std::span<ReducerInbox* const> inboxes_;
  MapperSettings settings_;
  std::vector<Storage> storages_;  // ascending ids
  std::vector<std::unique_ptr<Bucket>> buckets_;
  uint64_t max_buckets_;
  KeySorter sorter_;
  std::unique_ptr<std::byte[]> message_;  // a message is put together here
  MapperProgress progress_;
};

}  // namespace atolldb
