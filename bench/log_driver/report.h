// The report of `atoll bench log`: the logger's work, records and times.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/common/machine_info.h"
#include "bench/log_driver/options.h"
#include "bench/log_driver/timed_file_system.h"
#include "engine/log/log_writer.h"

namespace atolldb::log_bench {

/// Work of the logger alone. The times exclude its waits between epochs, in which workers fill
/// buffers.
struct LoggerWork {
  uint64_t epochs = 0;
  uint64_t records = 0;
  uint64_t close_ns = 0;  // time in EpochLogger::close
  uint64_t user_ns = 0;   // processor time within close_ns
  uint64_t system_ns = 0;
  uint64_t next_file_ns = 0;  // time to make files ahead, between epochs; not in close_ns
  FileTimes files;            // within close_ns
  LogWriterCounters written;
  std::vector<double> epoch_rates;  // records/s of each epoch

  double seconds() const { return static_cast<double>(close_ns) * 1e-9; }
  double records_per_second() const { return static_cast<double>(records) / seconds(); }
  double records_per_second_with_files() const {
    return static_cast<double>(records) * 1e9 / static_cast<double>(close_ns + next_file_ns);
  }
  double median_records_per_second() const;
  double bytes_per_second() const { return static_cast<double>(written.bytes) / seconds(); }
  double cpu_share() const {
    return static_cast<double>(user_ns + system_ns) / static_cast<double>(close_ns);
  }
  double ns_per_record(uint64_t ns) const {
    return static_cast<double>(ns) / static_cast<double>(records);
  }
  /// Returns the time for finding blocks and for stamping headers and checksums. It includes no
  /// write and no sync.
  uint64_t stamp_ns() const {
    const uint64_t device = files.write_ns + files.sync_ns;
    return close_ns > device ? close_ns - device : 0;
  }
};

struct Report {
  Options options;
  std::string source;     // origin of the records
  std::string directory;  // directory that was written to
  std::string storage;    // text by which the file system describes itself
  double recorded_bytes_per_record = 0;
  uint64_t recorded_blocks = 0;
  LoggerWork work;
  bool is_interrupted = false;
  bool verify_done = false;
  std::vector<std::string> violations;
  bench::MachineInfo machine;

  bool verified() const { return verify_done && violations.empty(); }
  std::string text() const;
  nlohmann::json json() const;
};

}  // namespace atolldb::log_bench
