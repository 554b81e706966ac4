#include "bench/log_driver/recording.h"

#include <algorithm>
#include <utility>

#include "bench/log_driver/options.h"
#include "engine/format/log_block.h"
#include "engine/log/log_scan.h"
#include "shared/base/try.h"

namespace atolldb::log_bench {

uint64_t count_records(const LogBlock& block) {
  uint64_t records = 0;
  for_each_record(block, [&](const LogRecord& record) {
    if (record.type != LogType::filler) ++records;
  });
  return records;
}

Result<Recording> read_recording(FileSystem& file_system, const std::string& data_dir,
                                 uint64_t first_epoch, uint64_t most) {
  ATOLL_ASSIGN(const auto read, read_savepoint(file_system, data_dir));
  Recording recording;
  uint64_t found = 0;
  const auto visit = [&](const LogBlock& block, const std::string&, uint64_t) {
    if (block.header.type != LogBlockType::records || block.header.epoch < first_epoch) return;
    // Keeps the newest blocks: a new block replaces the oldest one.
    if (recording.blocks.size() < most) {
      recording.blocks.push_back(block);
    } else {
      recording.blocks[found % most] = block;
    }
    ++found;
  };
  if (read) {
    const Savepoint& savepoint = read->savepoint;
    ATOLL_ASSIGN(auto ddl, read_ddl_log(file_system, data_dir, savepoint.cluster_uuid,
                                        savepoint.ddl_records));
    recording.ddl = std::move(ddl.records);
    for (const Incarnation& incarnation : savepoint.incarnations) {
      ATOLL_ASSIGN(const auto scan, scan_incarnation(file_system, savepoint, incarnation));
      if (scan.corruption) return std::unexpected(scan.corruption_error());
      for (const LogScan& log : scan.logs) {
        ATOLL_TRY(scan_log(file_system, log.stream, visit));
      }
    }
  }
  if (recording.blocks.empty()) {
    return make_error(ExitCode::failed, std::string(kCommand) + ": " + data_dir +
                                            ": no log records there: give the data directory of a "
                                            "cluster that has committed, or leave out --data-dir");
  }
  if (found > most) {
    std::ranges::rotate(recording.blocks,
                        recording.blocks.begin() + static_cast<ptrdiff_t>(found % most));
  }
  for (const LogBlock& block : recording.blocks) recording.records += count_records(block);
  return recording;
}

}  // namespace atolldb::log_bench
