#include "bench/log_driver/options.h"

#include <fmt/format.h>

#include "bench/driver/options.h"
#include "engine/format/log_block.h"
#include "engine/log/worker_log.h"
#include "shared/base/try.h"

namespace atolldb::log_bench {

Result<FileBackend> parse_backend(const std::string& name) {
  for (const FileBackend backend : {FileBackend::posix, FileBackend::pmem, FileBackend::null}) {
    if (name == name_of(backend)) return backend;
  }
  return bench::usage_error(kCommand, "--backend", fmt::format("'{}' is not a backend", name),
                            "use posix, pmem, or null, which discards the data");
}

const char* name_of(FileBackend backend) {
  switch (backend) {
    case FileBackend::posix:
      return "posix";
    case FileBackend::pmem:
      return "pmem";
    default:
      return "null";
  }
}

Result<void> check_options(const Options& options) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  constexpr uint64_t kMostBytes = uint64_t{1} << 44;
  const bench::Range ranges[] = {
      {"--seconds", options.seconds, 1, Options::kMaxSeconds},
      {"--record-seconds", options.record_seconds, 1, Options::kMaxSeconds},
      {"--workers", options.workers, 1, Options::kMaxWorkers},
      {"--buffer-bytes", options.buffer_bytes, kMiB, uint64_t{1} << 31},
      // The bytes that a worker logs in an epoch must fit into half of its buffer.
      {"--epoch-bytes", options.epoch_bytes, uint64_t{options.workers} * kLogBlockBytes,
       options.workers * (options.buffer_bytes / 2)},
      {"--file-bytes", options.file_bytes, kMiB, kMostBytes},
      {"--most-bytes", options.most_bytes, options.epoch_bytes, kMostBytes},
      {"--nvm-write-ns", options.nvm_write_ns, 0, Options::kMaxNvmNs},
  };
  ATOLL_TRY(bench::check_ranges(kCommand, ranges));
  const std::pair<const char*, uint64_t> whole[] = {{"--buffer-bytes", options.buffer_bytes},
                                                    {"--file-bytes", options.file_bytes}};
  for (const auto& [flag, bytes] : whole) {
    if (bytes % kLogBlockBytes == 0) continue;
    return bench::usage_error(kCommand, flag,
                              fmt::format("{} is not a whole number of blocks", bytes),
                              fmt::format("use a multiple of {}", kLogBlockBytes));
  }
  return {};
}

void make_smoke(Options& options) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  options.seconds = options.record_seconds = 1;
  options.buffer_bytes = 2 * kMiB;
  options.epoch_bytes = kMiB;
  options.file_bytes = 16 * kMiB;  // small, so that the logger changes files
  options.most_bytes = 64 * kMiB;
}

}  // namespace atolldb::log_bench
