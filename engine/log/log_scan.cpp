#include "engine/log/log_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/format/log_block.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

void count(LogFileScan& file, const LogBlock& block) {
  ++file.blocks;
  if (block.header.type == LogBlockType::file_header) return;
  if (file.first_epoch == 0) file.first_epoch = block.header.epoch;
  file.last_epoch = block.header.epoch;
  if (block.header.type == LogBlockType::marker) {
    ++file.markers;
  } else {
    for_each_record(block, [&](const LogRecord& record) {
      if (record.type != LogType::filler) ++file.records;
    });
  }
}

/// Records which storages have records in the block.
void record_storages(LogScan& scan, const LogBlock& block, const LogReader& reader) {
  uint32_t before = 0;  // storage id of the previous record (0: none); saves most map look-ups
  for_each_record(block, [&](const LogRecord& record) {
    if (record.type == LogType::filler || record.storage_id == before) return;
    before = record.storage_id;
    if (scan.storages.contains(before)) return;
    scan.storages[before] = {block.header.epoch, reader.file(), reader.offset()};
  });
}

/// Returns true if the log has its first file. The file and its header were durable before the
/// first commit (R28).
bool has_begun(const LogScan& log) { return !log.files.empty(); }

/// Computes the largest epoch known to be durable, and the cut: the last epoch that all logs have
/// closed. REQUIRES: there are logs.
void measure(IncarnationScan& scan, const Savepoint& savepoint) {
  CHECK(!scan.logs.empty() && scan.incarnation.start_epoch != 0);
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  uint64_t named = scan.incarnation.start_epoch - 1;
  for (const LogScan& log : scan.logs) {
    least = std::min(least, log.durable_epoch);
    most = std::max(most, log.durable_epoch);
    named = std::max(named, log.largest_durable_epoch);
    scan.largest_epoch = std::max(scan.largest_epoch, log.largest_epoch);
  }
  if (scan.incarnation.cut_epoch) {
    scan.known_durable_epoch = scan.cut_epoch = *scan.incarnation.cut_epoch;
    return;
  }
  scan.known_durable_epoch = std::max({named, savepoint.durable_epoch, savepoint.snapshot_epoch});
  scan.cut_epoch = fault::cut_at_maximum ? most : least;
}

bool lacks_what_was_durable(const IncarnationScan& scan, const LogScan& log) {
  return log.durable_epoch < scan.known_durable_epoch ||
         (!scan.incarnation.cut_epoch && !has_begun(log));
}

/// Returns true if the stream ends because its file is too short, although the file's header is
/// intact. A file has its whole size, durably, before its header is written. So damage has cut such
/// a file short, even if no epoch in it is known to be durable.
Result<bool> is_cut_short(FileSystem& file_system, const LogEnd& end) {
  if (!end.is_defect || end.offset == 0) return false;
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(end.file));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  return size < end.offset + kLogBlockBytes;
}

}  // namespace

bool IncarnationScan::holds_commits() const {
  return std::ranges::any_of(logs, [&](const LogScan& log) {
    return log.first_record_epoch && *log.first_record_epoch <= cut_epoch;
  });
}

Error IncarnationScan::corruption_error() const {
  CHECK(corruption);
  return {
      ExitCode::corruption,
      fmt::format("{}: offset {}: {}, but epoch {} was durable: the log is damaged: restore a "
                  "backup, start without what cannot be read with `atoll up --salvage`, or start "
                  "empty with `atoll up --discard-data`",
                  corruption->file, corruption->offset, corruption->reason, known_durable_epoch)};
}

Result<LogScan> scan_log(FileSystem& file_system, const LogStream& stream, const LogVisit& visit,
                         CoveredBlocks covered) {
  ATOLL_ASSIGN(auto reader, LogReader::open(file_system, stream, covered));
  LogScan scan;
  for (;;) {
    ATOLL_ASSIGN(auto block, reader.next());
    if (block == nullptr) break;
    const LogBlockHeader& header = block->header;
    if (header.type == LogBlockType::file_header) scan.files.push_back({.path = reader.file()});
    CHECK(!scan.files.empty());
    count(scan.files.back(), *block);
    if (header.type == LogBlockType::records && header.epoch > stream.covered_epoch) {
      if (!scan.first_record_epoch) scan.first_record_epoch = header.epoch;
      record_storages(scan, *block, reader);
    }
    scan.largest_epoch = std::max(scan.largest_epoch, header.epoch);
    scan.largest_durable_epoch = std::max(scan.largest_durable_epoch, header.durable_epoch);
    if (visit) visit(*block, reader.file(), reader.offset());
  }
  scan.stream = reader.stream();
  scan.durable_epoch = reader.closed_epoch();
  scan.end = reader.end();
  ATOLL_ASSIGN(auto remainder, reader.read_remainder());
  scan.intact_after_end = remainder.intact_blocks;
  scan.largest_epoch = std::max(scan.largest_epoch, remainder.largest_epoch);
  scan.largest_durable_epoch =
      std::max(scan.largest_durable_epoch, remainder.largest_durable_epoch);
  return scan;
}

Result<void> refuse_uncreated(const IncarnationScan& scan, const std::vector<DdlRecord>& ddl) {
  std::set<uint32_t> created;
  for (const DdlRecord& record : ddl) {
    if (record.operation == DdlOperation::create_storage) created.insert(record.storage_id);
  }
  for (const LogScan& log : scan.logs) {
    for (const auto& [id, sighting] : log.storages) {
      if (sighting.epoch > scan.cut_epoch || created.contains(id)) continue;
      if (fault::uncreated_storages) continue;
      return make_error(
          ExitCode::corruption,
          fmt::format("{}: offset {}: a record of storage {}, which none of the {} records of the "
                      "DDL log creates: the DDL log is damaged: restore a backup, or start empty "
                      "with `atoll up --discard-data`",
                      sighting.file, sighting.offset, id, ddl.size()));
    }
  }
  return {};
}

LogStream stream_of(const Savepoint& savepoint, const Incarnation& incarnation,
                    const LoggerPlace& place) {
  return {place.directory,
          place.node,
          place.logger,
          incarnation.number,
          incarnation.start_epoch,
          savepoint.cluster_uuid,
          savepoint.snapshot_epoch};
}

Result<IncarnationScan> scan_incarnation(FileSystem& file_system, const Savepoint& savepoint,
                                         const Incarnation& incarnation, CoveredBlocks covered,
                                         const RunTasks& run) {
  IncarnationScan scan;
  scan.incarnation = incarnation;
  if (incarnation.loggers.empty()) {
    scan.known_durable_epoch = scan.cut_epoch =
        incarnation.cut_epoch.value_or(incarnation.start_epoch - 1);
    return scan;
  }
  scan.logs.resize(incarnation.loggers.size());
  ATOLL_TRY(try_tasks(run, scan.logs.size(), [&](size_t i) -> Result<void> {
    const LogStream stream = stream_of(savepoint, incarnation, incarnation.loggers[i]);
    ATOLL_ASSIGN(scan.logs[i], scan_log(file_system, stream, {}, covered));
    return {};
  }));
  measure(scan, savepoint);
  const IncarnationScan first = scan;
  CHECK(scan.logs.size() == incarnation.loggers.size());
  std::vector<std::optional<LogEnd>> defects(scan.logs.size());
  ATOLL_TRY(try_tasks(run, scan.logs.size(), [&](size_t i) -> Result<void> {
    LogScan& log = scan.logs[i];
    ATOLL_ASSIGN(const bool is_short, is_cut_short(file_system, log.end));
    if (is_short && !incarnation.cut_epoch) defects[i] = log.end;
    if (!lacks_what_was_durable(first, log)) return {};
    ATOLL_ASSIGN(log, scan_log(file_system, log.stream, {}, covered));
    const bool is_damaged = lacks_what_was_durable(first, log) && !fault::damage_is_torn_tail;
    if (is_damaged && !defects[i]) defects[i] = log.end;
    return {};
  }));
  const auto defect =
      std::ranges::find_if(defects, [](const auto& end) { return end.has_value(); });
  if (defect != defects.end()) scan.corruption = *defect;
  // Computes the cut again, because repeated scans may have found later epochs. The largest epoch
  // known to be durable (K of R30) stays that of the first scans. A repeated scan may name a later
  // epoch as durable, which other logs did not have yet when they were scanned.
  measure(scan, savepoint);
  scan.known_durable_epoch = first.known_durable_epoch;
  CHECK(scan.corruption || scan.cut_epoch >= scan.known_durable_epoch ||
        fault::damage_is_torn_tail);
  return scan;
}

}  // namespace atolldb
