// `atoll bench ycsb`: loads, runs and verifies YCSB, and reports.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/driver/histogram_file.h"
#include "bench/ycsb_driver/driver.h"
#include "bench/ycsb_driver/estimate.h"
#include "ops/cli/bench_run.h"
#include "ops/cli/command.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

BenchReport ycsb_report(const ycsb::Report& report) {
  const std::string& path = report.options.histogram_file;
  return {report.text(), report.json(), bench::exit_code_of(report),
          path.empty()
              ? ""
              : bench::histograms_text(path, "ycsb", report.median_run(), ycsb::kTypeNames)};
}

Result<BenchReport> run_ycsb(const ycsb::Options& options, const ycsb::JobInput& input,
                             bench::ClusterPort& port, const bench::Console& console) {
  ATOLL_TRY(ycsb::check_cluster(options, port.node_count()));
  ATOLL_ASSIGN(const ycsb::Report report, ycsb::Driver(port, options, input, console).go());
  return ycsb_report(report);
}

Result<void> bench_ycsb(const ClusterChoice& choice, const ycsb::Options& given) {
  ycsb::Options options = given;
  ATOLL_ASSIGN(const BenchTarget target,
               bench_target(choice, ycsb::kCommand, options, options.clients));
  ATOLL_ASSIGN(const ycsb::JobInput input, ycsb::job_input(options));
  return run_benchmark(target, {.command = ycsb::kCommand,
                                .cluster_name = "ycsb-bench",
                                .options = options,
                                .what_to_lower = "--records or --seconds",
                                .violated = "records are wrong",
                                .estimate = [&](uint32_t nodes, uint32_t workers,
                                                uint32_t cores) -> Result<bench::Estimate> {
                                  ATOLL_TRY(ycsb::check_cluster(options, nodes));
                                  return ycsb::estimate_memory(options, input, nodes, workers,
                                                               cores);
                                },
                                .run =
                                    [&](bench::ClusterPort& port, const bench::Console& console) {
                                      return run_ycsb(options, input, port, console);
                                    }});
}

Result<void> run_ycsb_verb(const ClusterChoice& choice, const ycsb::Options& given,
                           BenchVerb verb) {
  ycsb::Options options = given;
  ATOLL_ASSIGN(const BenchTarget target,
               bench_target(choice, ycsb::kCommand, options, options.clients));
  ATOLL_TRY(ycsb::job_input(options));
  return run_bench_verb(
      target, verb,
      {.command = ycsb::kCommand,
       .violated = "records are wrong",
       .holds = "every record exists once and is whole",
       .prepare = [&](auto& port,
                      const auto& console) { return ycsb::prepare(port, options, console); },
       .run = [&](auto& port, const auto& console) -> Result<BenchReport> {
         ATOLL_ASSIGN(const ycsb::Report report, ycsb::run_prepared(port, options, console));
         return ycsb_report(report);
       },
       .verify = [](auto& port,
                    const auto& console) { return ycsb::verify_prepared(port, console); },
       .clean_up = ycsb::clean_up},
      options);
}

void add_ycsb_load_options(CLI::App& command, ycsb::Options& options) {
  command.add_option("--records", options.records, "Loaded records of all nodes together")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--record-bytes", options.record_bytes, "Bytes of a record without its key")
      ->capture_default_str();
  command
      .add_option("--fields", options.fields,
                  "Equal parts of a record; an update writes one of them")
      ->capture_default_str();
  command
      .add_option("--storage", options.storage, "Type of the storage: mastertree, array or hash")
      ->capture_default_str();
  command
      .add_option("--insert-order", options.insert_order,
                  "Keys of inserted records: hashed or ordered")
      ->capture_default_str();
}

void add_ycsb_run_options(CLI::App& command, ycsb::Options& options) {
  command.add_option("--workload", options.workload, "Workload: A, B, C, D, E, F or silor [A]");
  command.add_option("--mix", options.mix,
                     "Percentages of read:update:insert:scan:read-modify-write, instead of a "
                     "workload");
  command.add_option("--operations", options.operations, "Operations of one transaction")
      ->capture_default_str();
  command.add_option("--scan-length", options.scan_length, "Largest number of records of a scan")
      ->capture_default_str();
  command.add_option("--distribution", options.distribution,
                     "Choice of keys: uniform, zipfian or latest [the workload's]");
  command.add_option("--theta", options.theta, "Skew of zipfian and latest")->capture_default_str();
  command.add_option("--remote-percent", options.remote_percent,
                     "Percentage of operations on records of another node [equal on all nodes]");
  command.add_flag("--prefetch,!--no-prefetch", options.prefetch,
                   "Prefetch the records of the next transactions, 16 operations at a time, before "
                   "they run [on]");
  command.add_flag("--blind-updates", options.blind_updates,
                   "Updates overwrite whole records without reading them (mastertree, hash). The "
                   "check after the runs then cannot detect lost updates");
  add_client_options(command, options.clients);
  command
      .add_option("--think-time", options.clients.think_ms,
                  "Mean time in milliseconds from an answer of a client to the next request in its "
                  "place; exponentially distributed; 0: none")
      ->type_name("MS")
      ->capture_default_str();
}

void add_options(CLI::App& command, ycsb::Options& options) {
  add_ycsb_load_options(command, options);
  add_ycsb_run_options(command, options);
  add_common_options(command, options, "Check every record after the runs");
  add_bench_connect_option(command, options);
}

/// Adds a subcommand for one phase.
CLI::App* add_ycsb_verb(CLI::App& group, Invocation& invocation, const char* name, const char* help,
                        const std::shared_ptr<ycsb::Options>& options, BenchVerb verb) {
  CLI::App* const command =
      add_cluster_command(group, invocation, name, help, options,
                          [verb](const ClusterChoice& choice, const ycsb::Options& given) {
                            return run_ycsb_verb(choice, given, verb);
                          });
  add_bench_connect_option(*command, *options);
  // The options of a run have the file of keys, too.
  if (verb != BenchVerb::run) add_bench_key_file_option(*command, options->clients);
  return command;
}

}  // namespace

void add_ycsb_command(CLI::App& group, Invocation& invocation) {
  const auto options = std::make_shared<ycsb::Options>();
  CLI::App* command = add_cluster_command(
      group, invocation, "ycsb",
      "Run YCSB on a running cluster, or on one that it starts and stops", options, bench_ycsb);
  let_verbs_run(*command, invocation,
                [&invocation, options] { return bench_ycsb(invocation.choice, *options); });
  add_set_option(*command, invocation.choice.settings);
  add_options(*command, *options);
  const auto own = std::make_shared<ycsb::Options>();
  CLI::App* prepare = add_ycsb_verb(*command, invocation, "prepare",
                                    "Load the records into a running cluster, to stay there", own,
                                    BenchVerb::prepare);
  add_ycsb_load_options(*prepare, *own);
  CLI::App* run =
      add_ycsb_verb(*command, invocation, "run", "Run on the prepared records; may be repeated",
                    own, BenchVerb::run);
  add_run_options(*run, *own);
  add_ycsb_run_options(*run, *own);
  add_ycsb_verb(*command, invocation, "verify", "Check every record of the prepared database", own,
                BenchVerb::verify);
  add_ycsb_verb(*command, invocation, "cleanup", "Drop the storages of the benchmark", own,
                BenchVerb::cleanup);
}

}  // namespace atolldb::cli
