#include "bench/gleaner_driver/driver.h"

#include <utility>

#include "bench/gleaner_driver/log_to_glean.h"
#include "shared/base/try.h"
#include "shared/file/posix_file_system.h"

namespace atolldb::gleaner_bench {
namespace {

class Measurement {
 public:
  Measurement(FileSystem& file_system, const LogToGlean& log, const Options& options,
              const std::string& directory, const std::function<bool()>& is_interrupted)
      : file_system_(file_system),
        log_(log),
        options_(options),
        directory_(directory),
        is_interrupted_(is_interrupted),
        next_id_(log.base.id + 1) {}

  /// Makes a snapshot of `epoch` and keeps its files.
  Result<Gleaned> glean(uint64_t epoch, const Base& base) {
    if (is_interrupted_()) {
      return make_error(ExitCode::failed, std::string(kCommand) + ": interrupted");
    }
    return glean_once(file_system_, log_.plan(next_id_++, epoch, base), directory_,
                      options_.exchange_bytes);
  }

  Result<Scenario> repeat(std::string name, std::string what, const Base& base) {
    Scenario scenario{std::move(name), std::move(what), base.bytes(), 0, {}};
    for (uint32_t run = 0; run < options_.repeat; ++run) {
      const uint32_t id = next_id_;
      ATOLL_ASSIGN(auto gleaned, glean(log_.epoch, base));
      scenario.runs.push_back(std::move(gleaned));
      ATOLL_TRY(remove_files(id, scenario.runs.back()));
    }
    scenario.log_bytes = scenario.first().read_bytes;
    return scenario;
  }

 private:
  Result<void> remove_files(uint32_t id, const Gleaned& gleaned) {
    for (const SnapshotFilePlace& file : gleaned.result.files) {
      if (file.snapshot != id) continue;
      const auto removed =
          file_system_.remove(snapshot_file_path(file.directory, file.node, file.snapshot));
      if (!removed) return removed;
    }
    return {};
  }

  FileSystem& file_system_;
  const LogToGlean& log_;
  const Options& options_;
  const std::string& directory_;
  const std::function<bool()>& is_interrupted_;
  uint32_t next_id_;
};

}  // namespace

Result<Report> measure(const std::string& data_dir, uint64_t run_epoch, const Options& options,
                       const std::string& directory, const std::function<bool()>& is_interrupted) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const auto log, find_log(files, data_dir));
  Measurement measurement(files, log, options, directory, is_interrupted);
  Report report;
  report.options = options;
  report.directory = directory;
  report.machine = bench::MachineInfo::detect();
  const bool has_base = log.base.id != 0;
  ATOLL_ASSIGN(auto whole,
               measurement.repeat(has_base ? "since_snapshot" : "whole_log",
                                  has_base ? "recovery: the log after the newest snapshot"
                                           : "recovery without a snapshot: the whole log",
                                  log.base));
  report.scenarios.push_back(std::move(whole));
  if (has_base || run_epoch < 2) return report;
  // Makes a snapshot of the log before the run. Then processes the log of the run on top of it.
  ATOLL_ASSIGN(const auto loaded, measurement.glean(run_epoch - 1, log.base));
  ATOLL_ASSIGN(auto rest, measurement.repeat(
                              "since_snapshot",
                              "recovery with a snapshot of the loaded data: the rest of the log",
                              loaded.result));
  report.scenarios.push_back(std::move(rest));
  return report;
}

}  // namespace atolldb::gleaner_bench
