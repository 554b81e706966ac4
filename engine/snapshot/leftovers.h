// What starts that were given up have left, and its removal (rule R54: leftovers go before anything
// is created).
//
// A start that is killed leaves log files without commits, sorted runs, pages and metadata of a
// snapshot that no savepoint names. Were they only removed after a start that succeeds, each
// attempt on a full disk would leave less room for the next one.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/log/savepoint.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct RemovedLeftovers {
  std::vector<std::string> removed;  // paths
  /// Log files that no savepoint lists, without an intact header, but with more behind it: they
  /// stay.
  std::vector<std::string> damaged_logs;
};

/// Removes what nothing needs (delete_unneeded), sorted runs, and the log files of earlier starts
/// that were given up: no slot of the savepoint lists their incarnation, and they hold a header at
/// most. `incarnation`: of this start. A crash amid it leaves what the next call can work with.
/// Durable when it returns.
/// REQUIRES: store_cut has stored `savepoint`; `directories` are locked and belong to this cluster;
/// no run of the gleaner is under way, and this start has made no log file yet.
Result<RemovedLeftovers> remove_leftovers(FileSystem& file_system, const std::string& data_dir,
                                          Savepoint& savepoint,
                                          const std::set<std::string>& directories,
                                          uint64_t incarnation);

}  // namespace atolldb
