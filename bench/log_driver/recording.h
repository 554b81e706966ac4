// The blocks of records that the workers of a cluster have filled, from its log files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/log/ddl_log.h"
#include "engine/log/log_block.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb::log_bench {

struct Recording {
  std::vector<LogBlock> blocks;  // in the order of the logs; with records, without a defect
  uint64_t records = 0;          // in them; fillers do not count
  std::vector<DdlRecord> ddl;    // of the directory: what creates the storages of these records

  double bytes_per_record() const {
    return static_cast<double>(blocks.size() * kLogBlockBytes) / static_cast<double>(records);
  }
};

/// What a data directory's logs hold of `first_epoch` and later: the latest blocks, at most `most`.
/// Code failed: there are none. Code corruption: a log is damaged.
Result<Recording> read_recording(FileSystem& file_system, const std::string& data_dir,
                                 uint64_t first_epoch, uint64_t most);

/// Records of the block; fillers do not count.
uint64_t count_records(const LogBlock& block);

}  // namespace atolldb::log_bench
