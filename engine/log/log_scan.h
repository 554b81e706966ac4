// Scans the logs of an incarnation: computes what is durable, and tells a torn tail from corruption
// (R28, R29, R30). Reads only; the cluster may be stopped or running.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/ddl_log.h"
#include "engine/log/log_reader.h"
#include "engine/log/savepoint.h"
#include "shared/base/error.h"
#include "shared/base/run_tasks.h"
#include "shared/file/file.h"

namespace atolldb {

/// Content of one file, up to the end of its stream's chain.
struct LogFileScan {
  std::string path;
  uint64_t blocks = 0;
  uint64_t markers = 0;
  uint64_t records = 0;      // number of records, fillers excluded
  uint64_t first_epoch = 0;  // first epoch of records and markers; 0: none
  uint64_t last_epoch = 0;
};

/// Position of the first block that holds a record of a storage.
struct StorageSighting {
  uint64_t epoch = 0;
  std::string file;
  uint64_t offset = 0;  // in bytes
};

/// Scan of one logger's stream.
struct LogScan {
  LogStream stream;
  std::vector<LogFileScan> files;
  uint64_t durable_epoch = 0;  // epoch of the last marker, or start epoch - 1 if there is none
  /// Epoch of the first block of records that no snapshot covers (LogStream::covered_epoch).
  std::optional<uint64_t> first_record_epoch;
  uint64_t largest_epoch = 0;          // largest epoch of all intact blocks, even after the end
  uint64_t largest_durable_epoch = 0;  // largest durable epoch that any of those blocks names
  LogEnd end;
  uint64_t intact_after_end = 0;  // blocks after the end that are intact
  /// First block with a record of each storage id. Covered blocks do not count.
  std::map<uint32_t, StorageSighting> storages;
};

struct IncarnationScan {
  Incarnation incarnation;  // copied from the savepoint
  std::vector<LogScan> logs;
  /// K of R30: the largest epoch known to have been durable.
  uint64_t known_durable_epoch = 0;
  /// Blocks up to this epoch count, later ones do not. This is the cut from the savepoint. If the
  /// savepoint has none, it is the smallest durable epoch of all logs.
  uint64_t cut_epoch = 0;
  uint64_t largest_epoch = 0;  // largest epoch in any intact block of these logs
  /// Place of the first missing or damaged block that was durable. Nothing if only torn tails are
  /// missing.
  std::optional<LogEnd> corruption;

  /// Returns true if the incarnation has records up to its cut that are in no snapshot yet.
  bool holds_commits() const;
  /// Returns an error with code corruption, place, reason and remedy.
  /// REQUIRES: `corruption` is set.
  Error corruption_error() const;
};

/// Called for every block of the chains, with its file and its offset in bytes.
using LogVisit = std::function<void(const LogBlock&, const std::string& file, uint64_t offset)>;

/// Scans one stream and calls `visit` for its blocks. Reports damage in LogScan::end.
/// Errors: those of the file system.
Result<LogScan> scan_log(FileSystem& file_system, const LogStream& stream,
                         const LogVisit& visit = {}, CoveredBlocks covered = CoveredBlocks::read);

/// Scans the logs of an incarnation, computes the cut, and tells a torn tail from corruption (R30).
/// If a log seems to lack durable epochs, the function scans it a second time, because a running
/// cluster may have written to it meanwhile. `run` may scan several logs at the same time. The
/// result does not depend on that: if several logs have defects or errors, the first log in the
/// order of the savepoint counts.
Result<IncarnationScan> scan_incarnation(FileSystem& file_system, const Savepoint& savepoint,
                                         const Incarnation& incarnation,
                                         CoveredBlocks covered = CoveredBlocks::read,
                                         const RunTasks& run = run_in_turn);

/// Returns an error with code corruption if a record up to the cut belongs to a storage that no DDL
/// record creates. The DDL log has lost records then (R52). The error names id, file and offset.
Result<void> refuse_uncreated(const IncarnationScan& scan, const std::vector<DdlRecord>& ddl);

/// Returns the stream of one logger of the incarnation.
LogStream stream_of(const Savepoint& savepoint, const Incarnation& incarnation,
                    const LoggerPlace& place);

}  // namespace atolldb
