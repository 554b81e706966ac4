// `atoll bench log`: measures how many TPC-C log records per second one logger writes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "bench/log_driver/driver.h"
#include "ops/cli/bench_log_source.h"
#include "ops/cli/bench_run.h"
#include "ops/cli/command.h"
#include "shared/base/try.h"
#include "shared/file/posix_file_system.h"

namespace atolldb::cli {
namespace {

struct LogBenchOptions : LogSourceOptions {
  log_bench::Options log;
  std::string backend = "posix";
  bool keep = false;
};

/// Returns the number of log blocks that fit into the buffers of all workers.
uint64_t blocks_of(const log_bench::Options& options) {
  return options.workers * (options.buffer_bytes / kLogBlockBytes);
}

/// Runs TPC-C on the benchmark's own cluster, and reads the log that its worker has written.
Result<log_bench::Recording> record_tpcc(const log_bench::Options& options) {
  log_bench::Recording recording;
  ATOLL_TRY(run_tpcc_for_its_log(
      {.command = log_bench::kCommand,
       .cluster_name = "log-bench",
       .what_to_lower = "--record-seconds",
       .seconds = options.record_seconds},
      [&](const std::string& data_dir, uint64_t run_epoch) -> Result<void> {
        PosixFileSystem files;
        ATOLL_ASSIGN(auto read,
                     log_bench::read_recording(files, data_dir, run_epoch, blocks_of(options)));
        recording = std::move(read);
        return {};
      }));
  return recording;
}

Result<log_bench::Recording> record(const LogBenchOptions& options) {
  if (options.data_dir.empty()) return record_tpcc(options.log);
  PosixFileSystem files;
  return log_bench::read_recording(files, options.data_dir, 0, blocks_of(options.log));
}

std::string source_of(const LogBenchOptions& options) {
  if (!options.data_dir.empty()) return "the latest of " + options.data_dir;
  return "a run of TPC-C, without its load";
}

Result<void> replay_in(const std::string& directory, const LogBenchOptions& options,
                       const log_bench::Recording& recording) {
  ATOLL_ASSIGN(const auto is_interrupted, watch_for_interrupts());
  ATOLL_ASSIGN(auto report, log_bench::replay(recording, options.log, directory, is_interrupted));
  report.source = source_of(options);
  report.recorded_blocks = recording.blocks.size();
  report.recorded_bytes_per_record = recording.bytes_per_record();
  std::printf("%s", report.text().c_str());
  const auto written = write_json_file(options.json_file, report.json());
  if (!written) return written;
  if (report.violations.empty()) return {};
  return make_error(
      ExitCode::corruption,
      std::string(log_bench::kCommand) + ": the written log is incomplete or damaged: see above");
}

Result<void> bench_log(LogBenchOptions options) {
  if (options.smoke) log_bench::make_smoke(options.log);
  ATOLL_ASSIGN(const auto backend, log_bench::parse_backend(options.backend));
  options.log.backend = backend;
  ATOLL_TRY(log_bench::check_options(options.log));
  ATOLL_TRY(check_json_file(options.json_file));
  ATOLL_ASSIGN(const std::string directory, new_output_folder(options, "log-bench"));
  const Result<void> done = [&]() -> Result<void> {
    ATOLL_ASSIGN(const auto recording, record(options));
    return replay_in(directory, options, recording);
  }();
  if (options.keep) {
    std::printf("kept: atoll wal verify --data-dir %s\n", directory.c_str());
    return done;
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return done;
}

void add_options(CLI::App& command, LogBenchOptions& options) {
  log_bench::Options& log = options.log;
  command.add_option("--seconds", log.seconds, "Longest working time of the logger, in seconds")
      ->capture_default_str();
  command
      .add_option("--record-seconds", log.record_seconds,
                  "Seconds of the TPC-C run whose records are replayed")
      ->capture_default_str();
  command.add_option("--backend", options.backend, "posix, pmem, or null, which discards the data")
      ->capture_default_str();
  command
      .add_option("--nvm-write-ns", log.nvm_write_ns,
                  "Emulated NVRAM: nanoseconds by which each write takes longer")
      ->capture_default_str();
  command.add_option("--workers", log.workers, "Workers whose log buffers the logger writes")
      ->capture_default_str();
  command.add_option("--buffer-bytes", log.buffer_bytes, "Bytes of each worker's buffer")
      ->capture_default_str();
  command.add_option("--epoch-bytes", log.epoch_bytes, "Bytes of all workers' blocks in one epoch")
      ->capture_default_str();
  command.add_option("--file-bytes", log.file_bytes, "Bytes of a log file, which is preallocated")
      ->capture_default_str();
  command.add_option("--most-bytes", log.most_bytes, "Bytes after which the run ends")
      ->capture_default_str();
  command.add_flag("--keep", options.keep, "Keep the files, for `atoll wal`");
  add_log_source_options(command, options,
                         "Replay the latest records of this data directory instead of a run");
}

}  // namespace

void add_log_bench_command(CLI::App& group, Invocation& invocation) {
  CLI::App* command =
      group.add_subcommand("log", "Measure one logger that writes the log records of a TPC-C run");
  const auto options = std::make_shared<LogBenchOptions>();
  add_options(*command, *options);
  command->callback(
      [&invocation, options] { invocation.run = [options] { return bench_log(*options); }; });
}

}  // namespace atolldb::cli
