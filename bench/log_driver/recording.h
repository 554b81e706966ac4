// Recorded log blocks. The workers of a cluster filled them; they are read from its log files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/format/log_block.h"
#include "engine/log/ddl_log.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb::log_bench {

struct Recording {
  std::vector<LogBlock> blocks;  // one log after the other; each block has records and no defect
  uint64_t records = 0;          // in these blocks, without fillers
  std::vector<DdlRecord> ddl;    // DDL log of the directory; creates the storages of these records

  double bytes_per_record() const {
    return static_cast<double>(blocks.size() * kLogBlockBytes) / static_cast<double>(records);
  }
};

/// Reads the blocks of `first_epoch` and later from the logs of a data directory, and keeps the
/// newest `most` blocks. Returns code failed if there are none, or corruption if a log is damaged.
Result<Recording> read_recording(FileSystem& file_system, const std::string& data_dir,
                                 uint64_t first_epoch, uint64_t most);

/// Returns the number of records in the block, without fillers.
uint64_t count_records(const LogBlock& block);

}  // namespace atolldb::log_bench
