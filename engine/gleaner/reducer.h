// A reducer: swallows its inbox, keeps what is too much for its memory as sorted runs, then gives
// out all of it in sort order (foedus.txt section 7.3).
//
// Memory: one write buffer of kWriteBytes, and, while it gives out, two buffers for each sorted
// run, of which there is one for each full half: of ReducerSettings::read_bytes each while all take
// no more than kAllReadBytes, and of a chunk at least.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gleaner/exchange.h"
#include "engine/gleaner/log_source.h"
#include "engine/gleaner/record_merge.h"
#include "engine/gleaner/sorted_run.h"

namespace atolldb {

struct ReducerSettings {
  std::string directory;  // its node<k>/ gets the sorted runs; is made if it is missing
  uint16_t node = 0;
  uint16_t reducer = 0;               // within the node
  uint32_t snapshot = 0;              // also the number of the run
  uint64_t chunk_bytes = 128 * 1024;  // of sorted runs: SortedRunWriter::kMinChunkBytes or more
  uint64_t read_bytes = 1024 * 1024;  // of a run at once, at most; at least a chunk is read
};

/// Writer: the reducer's thread. Relaxed: for progress displays.
struct ReducerProgress {
  std::atomic<uint64_t> records_received{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> sorted_runs{0};
  std::atomic<uint64_t> bytes_dumped{0};
};

/// One thread's.
class Reducer {
 public:
  /// `file_system`, `inbox` outlive it; the inbox has begun the run.
  Reducer(FileSystem& file_system, ReducerInbox& inbox, ReducerSettings settings);
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  /// Removes its sorted runs, as well as it can: see remove_sorted_runs.
  ~Reducer();

  /// Takes all that the mappers send; returns when all have finished. An error gives the run up.
  Result<void> collect();

  /// The records with keys in [low, high), or from low on. REQUIRES: collect() has succeeded;
  /// ranges ascend and do not overlap; the source opened before is not used any more, and this one
  /// no longer than the reducer. What lies between the ranges is skipped.
  Result<std::unique_ptr<LogSource>> open(uint32_t storage_id, std::string_view low,
                                          std::optional<std::string_view> high);

  const ReducerProgress& progress() const { return progress_; }
  /// Records that later ones made superfluous.
  uint64_t left_out() const { return left_out_ + merge_.left_out(); }
  /// Records that were in no range opened so far.
  uint64_t skipped() const { return skipped_; }
  /// Every record was given out or skipped.
  bool is_at_end() const { return merge_.current() == nullptr; }

 private:
  Result<void> collect_all();
  Result<void> add_messages(const InboxBatch& batch, RecordMerge& merge, uint64_t& bytes);
  Result<void> dump(const InboxBatch& batch);
  /// REQUIRES: there are runs.
  uint32_t chunks_at_once() const;

  FileSystem* file_system_;
  ReducerInbox* inbox_;
  ReducerSettings settings_;
  std::string folder_;
  std::vector<std::string> paths_;  // of files that may be there
  std::vector<SortedRun> runs_;
  RecordMerge merge_;
  uint64_t left_out_ = 0;
  uint64_t skipped_ = 0;
  ReducerProgress progress_;
};

}  // namespace atolldb
