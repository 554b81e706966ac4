// `atoll bench gleaner`: measures the log records per second of each gleaner thread, and the speed
// of recovery from a log.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "bench/gleaner_driver/driver.h"
#include "ops/cli/bench_log_source.h"
#include "ops/cli/bench_run.h"
#include "ops/cli/command.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

struct GleanerBenchOptions : LogSourceOptions {
  gleaner_bench::Options gleaner;
};

Result<void> measure_in(const std::string& directory, const std::string& data_dir,
                        uint64_t run_epoch, const GleanerBenchOptions& options) {
  ATOLL_ASSIGN(const auto is_interrupted, watch_for_interrupts());
  ATOLL_ASSIGN(auto report, gleaner_bench::measure(data_dir, run_epoch, options.gleaner, directory,
                                                   is_interrupted));
  report.source = options.data_dir.empty() ? "a run of TPC-C with its load" : options.data_dir;
  std::printf("%s", report.text().c_str());
  return write_json_file(options.json_file, report.json());
}

Result<void> measure(const std::string& directory, const GleanerBenchOptions& options) {
  if (!options.data_dir.empty()) return measure_in(directory, options.data_dir, 0, options);
  return run_tpcc_for_its_log({.command = gleaner_bench::kCommand,
                               .cluster_name = "gleaner-bench",
                               .what_to_lower = "--warehouses or --record-seconds",
                               .seconds = options.gleaner.record_seconds,
                               .warehouses = options.gleaner.warehouses},
                              [&](const std::string& data_dir, uint64_t run_epoch) {
                                return measure_in(directory, data_dir, run_epoch, options);
                              });
}

Result<void> bench_gleaner(GleanerBenchOptions options) {
  if (options.smoke) gleaner_bench::make_smoke(options.gleaner);
  ATOLL_TRY(gleaner_bench::check_options(options.gleaner));
  ATOLL_TRY(check_json_file(options.json_file));
  ATOLL_ASSIGN(const std::string directory, new_output_folder(options, "gleaner-bench"));
  const Result<void> done = measure(directory, options);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return done;
}

void add_options(CLI::App& command, GleanerBenchOptions& options) {
  gleaner_bench::Options& gleaner = options.gleaner;
  command
      .add_option("--record-seconds", gleaner.record_seconds,
                  "Seconds of the TPC-C run that writes the log")
      ->capture_default_str();
  command.add_option("--warehouses", gleaner.warehouses, "Warehouses of the TPC-C run")
      ->capture_default_str();
  command
      .add_option("--repeat", gleaner.repeat,
                  "Number of times that each log is gleaned; the report shows medians")
      ->capture_default_str();
  command.add_option("--exchange-bytes", gleaner.exchange_bytes, "Bytes of the reducer's inbox")
      ->capture_default_str();
  add_log_source_options(
      command, options,
      "Glean the log of this data directory instead of a run; nothing in it is changed");
}

}  // namespace

void add_gleaner_bench_command(CLI::App& group, Invocation& invocation) {
  CLI::App* command = group.add_subcommand(
      "gleaner", "Measure one mapper, one reducer and one composer on the log of a TPC-C run");
  const auto options = std::make_shared<GleanerBenchOptions>();
  add_options(*command, *options);
  command->callback(
      [&invocation, options] { invocation.run = [options] { return bench_gleaner(*options); }; });
}

}  // namespace atolldb::cli
