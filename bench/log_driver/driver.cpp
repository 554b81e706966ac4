#include "bench/log_driver/driver.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <utility>

#include "bench/common/clock.h"
#include "bench/log_driver/replay_workers.h"
#include "engine/log/epoch_logger.h"
#include "engine/recovery/log_start.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb::log_bench {
namespace {

struct CpuTime {
  uint64_t user_ns;
  uint64_t system_ns;

  static CpuTime of_this_thread() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return {to_ns(usage.ru_utime), to_ns(usage.ru_stime)};
  }
  static uint64_t to_ns(const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_usec) * 1'000;
  }
};

/// A data directory that is ready for the first commit. `begin` takes the steps of a coordinator
/// and its logger before that commit.
class Begun {
 public:
  static Result<Begun> begin(FileSystem& coordinator, FileSystem& log, const Options& options,
                             const std::string& directory, const std::vector<DdlRecord>& ddl) {
    Begun begun;
    if (log.is_durable()) {
      ATOLL_ASSIGN(auto start, examine(coordinator, directory));
      begun.start_ = std::move(start);
      ATOLL_TRY(store_cut(coordinator, directory, begun.start_));
      ATOLL_TRY(begun.log_ddl(coordinator, directory, ddl));
    } else {
      begun.start_.incarnation = begun.start_.start_epoch = 1;
    }
    ATOLL_ASSIGN(auto writer,
                 LogWriter::create(log, {.directory = directory,
                                         .node = 0,
                                         .logger = 0,
                                         .incarnation = begun.start_.incarnation,
                                         .start_epoch = begun.start_.start_epoch,
                                         .cluster_uuid = begun.start_.savepoint.cluster_uuid,
                                         .file_bytes = options.file_bytes}));
    begun.writer_ = std::move(writer);
    if (log.is_durable()) {
      ATOLL_TRY(
          begin_incarnation(coordinator, directory, begun.start_, {LoggerPlace{0, 0, directory}}));
    }
    return begun;
  }

  uint64_t start_epoch() const { return start_.start_epoch; }
  LogWriter take_writer() { return *std::move(writer_); }
  LogStart& start() { return start_; }

 private:
  /// Writes the DDL records of the storages. Log records of a storage that no DDL record creates
  /// would count as corruption (R52).
  Result<void> log_ddl(FileSystem& coordinator, const std::string& directory,
                       const std::vector<DdlRecord>& ddl) {
    ATOLL_ASSIGN(auto log, DdlLog::open(coordinator, directory, start_.savepoint.cluster_uuid));
    for (const DdlRecord& record : ddl) {
      ATOLL_TRY(log.append(record));
    }
    start_.savepoint.ddl_records = ddl.size();
    return {};
  }

  LogStart start_;
  std::optional<LogWriter> writer_;
};

FileTimes difference(const FileTimes& later, const FileTimes& before) {
  return {later.write_ns - before.write_ns, later.writes - before.writes,
          later.sync_ns - before.sync_ns, later.syncs - before.syncs};
}

/// Runs one epoch and adds its work to `work`. In a cluster the workers compute the checksums of
/// payloads. Here the logger's time includes them, so that it covers the whole cost of a record.
Result<void> close_epoch(EpochLogger& logger, ReplayWorkers& workers, const TimedFileSystem& files,
                         uint64_t epoch, uint64_t records, LoggerWork& work) {
  const FileTimes files_before = files.times();
  const CpuTime cpu_before = CpuTime::of_this_thread();
  const uint64_t begin = bench::monotonic_ns();
  workers.seal_blocks();
  ATOLL_TRY(logger.close(epoch));
  const uint64_t ns = bench::monotonic_ns() - begin;
  const CpuTime cpu = CpuTime::of_this_thread();
  const FileTimes times = difference(files.times(), files_before);
  ++work.epochs;
  work.records += records;
  work.close_ns += ns;
  work.user_ns += cpu.user_ns - cpu_before.user_ns;
  work.system_ns += cpu.system_ns - cpu_before.system_ns;
  work.files.write_ns += times.write_ns;
  work.files.writes += times.writes;
  work.files.sync_ns += times.sync_ns;
  work.files.syncs += times.syncs;
  work.epoch_rates.push_back(static_cast<double>(records) * 1e9 / static_cast<double>(ns));
  return {};
}

/// Makes the next file, as a logger thread does when it has no epoch to close.
Result<void> prepare_next_file(EpochLogger& logger, LoggerWork& work) {
  const uint64_t begin = bench::monotonic_ns();
  auto prepared = logger.wants_next_file() ? logger.prepare_next_file() : Result<void>{};
  work.next_file_ns += bench::monotonic_ns() - begin;
  return prepared;
}

}  // namespace

Result<Report> replay(const Recording& recording, const Options& options,
                      const std::string& directory, const std::function<bool()>& is_interrupted) {
  PosixFileSystem coordinator;
  TimedFileSystem files(
      make_file_system({.backend = options.backend,
                        .latency = {.write = std::chrono::nanoseconds(options.nvm_write_ns)},
                        .warn = {}}));
  ATOLL_ASSIGN(auto begun, Begun::begin(coordinator, files, options, directory, recording.ddl));
  ReplayWorkers workers(recording, options.workers, options.buffer_bytes);
  uint64_t epoch = begun.start_epoch();
  EpochBlock& epochs = workers.epochs();
  epochs.durable.store(epoch - 1, std::memory_order_release);
  EpochLogger logger(workers.view(), begun.take_writer(), workers.sources());

  const uint64_t blocks = options.epoch_bytes / kLogBlockBytes / options.workers;
  const uint64_t end_ns = uint64_t{options.seconds} * 1'000'000'000;
  Report report;
  LoggerWork& work = report.work;
  while (work.close_ns < end_ns &&
         logger.counters().bytes + options.epoch_bytes <= options.most_bytes) {
    if ((report.is_interrupted = is_interrupted())) break;
    const uint64_t records = workers.commit(epoch, blocks);
    // Does the coordinator's part: ends the epoch before the logger closes it, and declares it
    // durable afterwards (R26, R29).
    epochs.current.store(epoch + 1, std::memory_order_seq_cst);
    ATOLL_TRY(close_epoch(logger, workers, files, epoch, records, work));
    epochs.durable.store(epoch, std::memory_order_release);
    ++epoch;
    ATOLL_TRY(prepare_next_file(logger, work));
  }
  work.written = logger.counters();
  report.options = options;
  report.directory = directory;
  report.storage = files.describe();
  report.machine = bench::MachineInfo::detect();
  if (work.epochs == 0) {
    return make_error(
        ExitCode::failed,
        std::string(kCommand) + ": interrupted before the first epoch: nothing was measured");
  }
  if (!files.is_durable()) return report;
  ATOLL_TRY(store_durable_epoch(coordinator, directory, begun.start(), epoch - 1));
  ATOLL_ASSIGN(auto violations, verify_replay(directory, work.records, epoch - 1));
  report.violations = std::move(violations);
  report.verify_done = true;
  return report;
}

Result<std::vector<std::string>> verify_replay(const std::string& directory, uint64_t records,
                                               uint64_t epoch) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const auto read, read_savepoint(files, directory));
  std::vector<std::string> violations;
  if (!read || read->savepoint.uncut() == nullptr) {
    violations.push_back(directory + ": no savepoint lists the written logs");
    return violations;
  }
  const Savepoint& savepoint = read->savepoint;
  ATOLL_ASSIGN(const auto scan, scan_incarnation(files, savepoint, *savepoint.uncut()));
  if (scan.corruption) violations.push_back(scan.corruption_error().message);
  uint64_t found = 0;
  for (const LogScan& log : scan.logs) {
    for (const LogFileScan& file : log.files) found += file.records;
    if (log.end.is_defect || log.intact_after_end != 0) {
      violations.push_back(fmt::format("{}: offset {}: {}; {} intact blocks after it", log.end.file,
                                       log.end.offset, log.end.reason, log.intact_after_end));
    }
  }
  if (found != records) {
    violations.push_back(fmt::format("{} records were written, but {} were found", records, found));
  }
  if (scan.cut_epoch != epoch) {
    violations.push_back(
        fmt::format("epoch {} was closed, but the logs end at epoch {}", epoch, scan.cut_epoch));
  }
  const auto unlisted =
      refuse_unlisted(files, savepoint, log_directories(savepoint, directory, {}));
  if (!unlisted && unlisted.error().code != ExitCode::corruption) {
    return std::unexpected(unlisted.error());
  }
  if (!unlisted) violations.push_back(unlisted.error().message);
  return violations;
}

}  // namespace atolldb::log_bench
