// Options of `atoll bench log`, and their checks.
#pragma once

#include <cstdint>
#include <string>

#include "shared/base/error.h"
#include "shared/config/config.h"

namespace atolldb::log_bench {

inline constexpr const char* kCommand = "bench log";

struct Options {
  uint32_t seconds = 5;                        // duration of the logger's work
  uint32_t record_seconds = 3;                 // duration of the TPC-C run that makes the log
  uint32_t workers = 4;                        // number of buffers that the logger writes from
  uint64_t buffer_bytes = uint64_t{16} << 20;  // per worker
  uint64_t epoch_bytes = uint64_t{8} << 20;    // log bytes per epoch, summed over the workers
  uint64_t file_bytes = uint64_t{1} << 30;
  uint64_t most_bytes = uint64_t{4} << 30;  // limit for the bytes written
  FileBackend backend = FileBackend::posix;
  uint32_t nvm_write_ns = 0;  // emulated NVRAM: time added to each write

  static constexpr uint32_t kMaxSeconds = 86'400;
  static constexpr uint32_t kMaxWorkers = 250;
  static constexpr uint32_t kMaxNvmNs = 10'000'000;
};

/// Returns usage errors.
Result<FileBackend> parse_backend(const std::string& name);
const char* name_of(FileBackend backend);
Result<void> check_options(const Options& options);

/// Makes the sizes so small that the run is only a functional check.
void make_smoke(Options& options);

}  // namespace atolldb::log_bench
