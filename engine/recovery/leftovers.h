// Removes the files that failed start-ups have left, before a start-up creates anything (R54).
//
// A start-up that is killed leaves log files without commits, sorted runs, and pages and metadata
// of a snapshot that no savepoint names. If only successful start-ups removed these files, each
// attempt on a full disk would leave less room for the next one.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/log/savepoint.h"
#include "engine/recovery/retention.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct RemovedLeftovers {
  std::vector<std::string> removed;  // paths of the removed files
  /// Log files that no savepoint slot lists, but that hold more than a header. They are retained.
  std::vector<std::string> damaged_logs;
};

/// Removes files that nothing needs (delete_unneeded), sorted runs, and log files of failed earlier
/// starts. Such a log file holds at most a header, and no slot of the savepoint lists its
/// incarnation. `incarnation`: the number of this start-up. Keeps the log files for which
/// `keep_log` returns true (R72). The result is durable on return. After a crash during the call
/// the next call can continue. REQUIRES: store_cut has stored `savepoint`; `directories` are locked
/// and belong to this cluster; no snapshot job is under way; this start-up has created no log file
/// yet.
Result<RemovedLeftovers> remove_leftovers(FileSystem& file_system, const std::string& data_dir,
                                          Savepoint& savepoint,
                                          const std::set<std::string>& directories,
                                          uint64_t incarnation, const KeepLog& keep_log = {});

}  // namespace atolldb
