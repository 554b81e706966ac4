// What the logs of an incarnation say: what is durable, and whether what is missing at a log's end
// is the tail of a crash or corruption (design: durability; rules R28, R29, R30). Reads only, of
// dead and of live clusters.
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
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Of one file, as far as its stream's chain reaches.
struct LogFileScan {
  std::string path;
  uint64_t blocks = 0;
  uint64_t markers = 0;
  uint64_t records = 0;      // fillers do not count
  uint64_t first_epoch = 0;  // of records and markers; 0: none
  uint64_t last_epoch = 0;
};

/// Where the first block is that holds a record of a storage.
struct StorageSighting {
  uint64_t epoch = 0;
  std::string file;
  uint64_t offset = 0;  // in bytes
};

/// Of one logger's stream.
struct LogScan {
  LogStream stream;
  std::vector<LogFileScan> files;
  uint64_t durable_epoch = 0;  // of the last marker; start epoch - 1 before the first
  /// Of the first block of records that no snapshot covers (LogStream::covered_epoch).
  std::optional<uint64_t> first_record_epoch;
  uint64_t largest_epoch = 0;          // of any intact block, behind the end, too
  uint64_t largest_durable_epoch = 0;  // named by any intact block, behind the end, too
  LogEnd end;
  uint64_t intact_behind_end = 0;  // blocks
  /// By id; of blocks that no snapshot covers.
  std::map<uint32_t, StorageSighting> storages;
};

struct IncarnationScan {
  Incarnation incarnation;  // as the savepoint has it
  std::vector<LogScan> logs;
  /// K of R30: what is known to have been durable.
  uint64_t known_durable_epoch = 0;
  /// Up to which epoch its blocks count: the stored cut; else the least that all logs have.
  uint64_t cut_epoch = 0;
  uint64_t largest_epoch = 0;  // of any intact block
  /// Where a block is missing or damaged that was durable; nothing: what is missing is torn tails.
  std::optional<LogEnd> corruption;

  /// Records of the incarnation count, and are in no snapshot yet.
  bool holds_commits() const;
  /// Place, reason and way out, with code corruption. REQUIRES: corruption.
  Error corruption_error() const;
};

/// Sees every block of the chains, with its file and offset in bytes.
using LogVisit = std::function<void(const LogBlock&, const std::string& file, uint64_t offset)>;

/// Errors: those of the file system; damage is none.
Result<LogScan> scan_log(FileSystem& file_system, const LogStream& stream,
                         const LogVisit& visit = {}, CoveredBlocks covered = CoveredBlocks::read);

/// Scans the logs of an incarnation of the savepoint, and judges. A log that has less than what
/// another one, read later, knows to be durable is read again before it is called corrupt: a live
/// cluster may have written on.
Result<IncarnationScan> scan_incarnation(FileSystem& file_system, const Savepoint& savepoint,
                                         const Incarnation& incarnation,
                                         CoveredBlocks covered = CoveredBlocks::read);

/// Records that count, of a storage that no record of the DDL log creates: the DDL log has lost
/// some (R52). Code corruption, with id, file and offset.
Result<void> refuse_uncreated(const IncarnationScan& scan, const std::vector<DdlRecord>& ddl);

/// The stream of one of its loggers.
LogStream stream_of(const Savepoint& savepoint, const Incarnation& incarnation,
                    const LoggerPlace& place);

}  // namespace atolldb
