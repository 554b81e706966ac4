// One snapshot job with one mapper, one reducer and one composer, with the time of each.
#pragma once

#include <cstdint>
#include <string>

#include "bench/gleaner_driver/log_to_glean.h"

namespace atolldb::gleaner_bench {

/// Times of one part on its thread.
struct PartTime {
  uint64_t wall_ns = 0;  // including waits for the other parts and for the device
  uint64_t cpu_ns = 0;
  uint64_t system_ns = 0;  // part of cpu_ns that the kernel used
};

struct Gleaned {
  // Mapper. The reducer collects its records at the same time.
  PartTime map;
  uint64_t read_bytes = 0;  // of log files
  uint64_t records_read = 0;
  uint64_t records_shipped = 0;
  // Reducer.
  PartTime collect;
  uint64_t records_received = 0;
  uint64_t sorted_runs = 0;
  uint64_t dumped_bytes = 0;
  // Composer, including the merge of the reducer's sorted runs.
  PartTime compose;
  uint64_t records_composed = 0;
  uint64_t pages_written = 0;
  uint64_t pages_read = 0;  // pages of the base snapshot
  // Combination of the roots, and sync of the files.
  PartTime finish;
  uint64_t wall_ns = 0;  // from the start of the first part to the end of the last
  Base result;           // the snapshot

  /// Returns the sum of one clock over all parts.
  uint64_t sum(uint64_t PartTime::* clock) const {
    return map.*clock + collect.*clock + compose.*clock + finish.*clock;
  }
};

/// Runs `plan` (from LogToGlean::plan). Puts snapshot files and sorted runs into `directory`.
/// Writes no metadata. The caller removes the files.
Result<Gleaned> glean_once(FileSystem& file_system, const SnapshotPlan& plan,
                           const std::string& directory, uint64_t exchange_bytes);

}  // namespace atolldb::gleaner_bench
