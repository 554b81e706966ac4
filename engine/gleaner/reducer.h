// A reducer receives records through its inbox, spills what exceeds its memory to sorted runs, and
// then returns all records in sort order.
// Source: [FOEDUS15] section 7.3.
//
// Each full half of the inbox becomes one sorted run.
//
// Memory while the reducer spills: one write buffer of kRunWriteBytes. Memory while it merges: two
// read buffers for each sorted run that the merge reads, and RecordMerge::kBytesPerKey for each of
// about RecordMerge::kWindowKeys keys. A read buffer has ReducerSettings::read_bytes. If all read
// buffers together would exceed kMergeReadBytes, they are smaller, but have at least one chunk.
// run_reduction.h bounds the number of sorted runs that a merge reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gleaner/exchange.h"
#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/record_merge.h"
#include "engine/gleaner/run_reduction.h"
#include "engine/gleaner/sorted_run.h"

namespace atolldb {

struct ReducerSettings {
  std::string directory;  // sorted runs are in its node<k>/, which is created if missing
  uint16_t node = 0;
  uint16_t reducer = 0;   // within the node
  uint32_t snapshot = 0;  // id of the snapshot, which is also the run number of the inbox
  // Chunk size of sorted runs: SortedRunWriter::kMinChunkBytes or more.
  uint64_t chunk_bytes = 128 * 1024;
  uint64_t read_bytes = 1024 * 1024;  // largest read of a sorted run; at least one chunk is read
  uint32_t max_merged_runs = kMaxMergedRuns;
};

/// Writer: the reducer's thread. All accesses are relaxed: the values are for progress displays.
struct ReducerProgress {
  std::atomic<uint64_t> records_received{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> sorted_runs{0};
  std::atomic<uint64_t> bytes_dumped{0};
};

/// Receives the records of one snapshot job for one reducer, and returns them in sort order.
/// Thread: one.
class Reducer {
 public:
  /// REQUIRES: `file_system` and `inbox` outlive the reducer; the inbox has begun the run.
  Reducer(FileSystem& file_system, ReducerInbox& inbox, ReducerSettings settings);
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  /// Removes its sorted runs, if possible. remove_leftovers removes the rest at the next start-up.
  ~Reducer();

  /// Receives all records and returns when all mappers have finished. An error aborts the run.
  Result<void> collect();

  /// Returns a source of the records with keys in [low, high), or from low on if `high` is absent.
  /// Records between the ranges are skipped.
  /// REQUIRES: collect() has succeeded; ranges ascend and do not overlap; the source opened before
  /// is no longer used; the reducer outlives the source.
  Result<std::unique_ptr<LogSource>> open(uint32_t storage_id, std::string_view low,
                                          std::optional<std::string_view> high);

  const ReducerProgress& progress() const { return progress_; }
  /// Returns the number of redundant records that were elided.
  uint64_t elided() const { return elided_ + merge_.elided(); }
  /// Returns the number of records that no range opened so far contained.
  uint64_t skipped() const { return skipped_; }
  /// Returns whether every record was returned or skipped.
  bool is_at_end() const { return merge_.batch().empty(); }

 private:
  Result<void> collect_all();
  struct Received {
    uint64_t records = 0;
    uint64_t bytes = 0;
  };
  Result<Received> add_messages(const InboxBatch& batch, RecordMerge& merge);
  Result<void> dump(const InboxBatch& batch);
  RunMergeSettings merge_settings() const {
    return {settings_.chunk_bytes, settings_.read_bytes, settings_.max_merged_runs};
  }

  FileSystem* file_system_;
  ReducerInbox* inbox_;
  ReducerSettings settings_;
  RunSet set_;
  RecordMerge merge_;
  uint64_t elided_ = 0;
  uint64_t skipped_ = 0;
  ReducerProgress progress_;
};

}  // namespace atolldb
