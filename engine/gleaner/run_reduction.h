// Reduces many sorted runs to few: merges adjacent runs to longer ones, in as many passes as
// necessary. So the last merge of a reducer needs bounded memory and descriptors, however long the
// log was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/gleaner/record_merge.h"
#include "engine/gleaner/sorted_run.h"
#include "shared/base/error.h"
#include "shared/base/limits.h"
#include "shared/file/file.h"

namespace atolldb {

/// Largest number of sorted runs that one merge reads. An open run has two descriptors and two
/// buffers.
inline constexpr uint32_t kMaxMergedRuns = 128;
/// Smallest such number for a reducer that shares the descriptors of its process with others.
inline constexpr uint32_t kMinMergedRuns = 8;
/// Returns the number of runs that each of `reducers` reducers of a process merges at once. Up to
/// 16 reducers together open no more runs than a single reducer would.
constexpr uint32_t merged_runs_of(uint32_t reducers) {
  return reducers <= 1 ? kMaxMergedRuns : std::max(kMinMergedRuns, kMaxMergedRuns / reducers);
}
/// Limit for the read buffers of all runs of one merge.
inline constexpr uint64_t kMergeReadBytes = uint64_t{32} << 20;
/// Size of the write buffer of a sorted run, rounded down to whole chunks.
inline constexpr uint64_t kRunWriteBytes = kHugePageBytes;

struct RunMergeSettings {
  uint64_t chunk_bytes = 0;
  uint64_t read_bytes = 0;  // largest read of a run; at least one chunk is read
  uint32_t max_runs = kMaxMergedRuns;
};

/// Returns the number of runs that one merge may read: as many as have room in kMergeReadBytes with
/// two buffers of one chunk each, but at least 2 and at most `max_runs`.
uint32_t runs_at_once(const RunMergeSettings& settings);

/// Opens the runs and adds them to the merge, in their order.
/// REQUIRES: there are at most runs_at_once runs.
Result<void> add_runs(FileSystem& file_system, const RunMergeSettings& settings,
                      std::span<const SortedRun> runs, RecordMerge& merge);

/// Writes the current record of the merge and all later ones to a new file.
/// `record_bytes`: at least the bytes of these records. `check`: called from time to time; its
/// error ends the call.
Result<SortedRun> write_run(FileSystem& file_system, const std::string& path, SortedRunName name,
                            uint64_t record_bytes, uint64_t chunk_bytes, RecordMerge& merge,
                            const std::function<Result<void>()>& check = {});

/// The sorted runs of a reducer. The order of the runs is the order in which they were received.
struct RunSet {
  std::string folder;                   // folder of the files; exists if there are runs
  SortedRunName next_name = {};         // name of the next run; no run has its number yet
  std::vector<SortedRun> runs = {};     // complete runs
  std::vector<std::string> paths = {};  // paths of all files that may exist
};

struct RunReduction {
  uint64_t elided = 0;  // redundant records that were elided (R35)
  uint64_t runs = 0;    // runs that were written
  uint64_t bytes = 0;   // bytes of records in these runs
};

/// Merges adjacent runs until at most runs_at_once are left, and removes the merged files. Reads no
/// more runs than necessary. The records of the remaining runs are the same, except for elided
/// ones.
Result<RunReduction> reduce_runs(FileSystem& file_system, const RunMergeSettings& settings,
                                 RunSet& set, const std::function<Result<void>()>& check);

}  // namespace atolldb
