// Finds the log files that a replay needs, and reads their records (R95).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/gleaner/snapshot_plan.h"
#include "engine/log/log_reader.h"
#include "shared/base/durability_scheme.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// One log file of a replay.
struct LogReplayFile {
  LogStream stream;
  uint32_t ordinal = 0;
  uint64_t first_epoch = 0;    // first epoch that counts: the replay epoch of the checkpoint
  uint64_t last_epoch = 0;     // last epoch that counts: the cut of the incarnation
  uint64_t closed_before = 0;  // last epoch that was closed before the file
  bool is_last = false;        // of its stream
};

/// Returns the files with records of the epochs from `first_epoch` on, up to the cut of each
/// stream. `streams`: all streams whose cut is at least `first_epoch`. Files of earlier epochs
/// alone are skipped, and may be missing. Error: code corruption, with the file, if a file is
/// missing or has a damaged header, and the log before it does not reach the cut.
Result<std::vector<LogReplayFile>> log_files_to_replay(
    FileSystem& file_system, const std::vector<PlannedStream>& streams, uint64_t first_epoch,
    ReplayOrder order = ReplayOrder::newest_first);

/// Called for each block of records whose epoch counts.
using LogBlockVisit = std::function<Result<void>(const LogBlock& block)>;

/// Reads the file up to its end, or up to the first defect after the last epoch that counts. Adds
/// the bytes read to `bytes`, and the number of blocks that do not count to `outside`. Error: code
/// corruption, with file, offset and reason, for damage to an epoch that counts.
Result<void> read_log_file(FileSystem& file_system, const LogReplayFile& file,
                           const LogBlockVisit& visit, uint64_t& bytes, uint64_t& outside);

}  // namespace atolldb
