// `atoll bench ycsb`: loads, runs and verifies YCSB, and reports.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/ycsb_driver/driver.h"
#include "bench/ycsb_driver/estimate.h"
#include "ops/cli/bench_run.h"
#include "ops/cli/command.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

Result<BenchReport> run_ycsb(const ycsb::Options& options, const ycsb::JobInput& input,
                             bench::ClusterPort& port, const bench::Console& console) {
  ATOLL_TRY(ycsb::check_cluster(options, port.node_count()));
  ATOLL_ASSIGN(const ycsb::Report report, ycsb::Driver(port, options, input, console).go());
  return BenchReport{report.text(), report.json(), bench::exit_code_of(report)};
}

Result<void> bench_ycsb(const ClusterChoice& choice, const ycsb::Options& options) {
  ATOLL_ASSIGN(const ycsb::JobInput input, ycsb::job_input(options));
  return run_benchmark(choice, {.command = ycsb::kCommand,
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

void add_options(CLI::App& command, ycsb::Options& options) {
  command.add_option("--workload", options.workload, "Workload: A, B, C, D, E, F or silor [A]");
  command.add_option("--mix", options.mix,
                     "Percentages of read:update:insert:scan:read-modify-write, instead of a "
                     "workload");
  command.add_option("--records", options.records, "Loaded records of all nodes together")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--record-bytes", options.record_bytes, "Bytes of a record without its key")
      ->capture_default_str();
  command
      .add_option("--fields", options.fields,
                  "Equal parts of a record; an update writes one of them")
      ->capture_default_str();
  command.add_option("--operations", options.operations, "Operations of one transaction")
      ->capture_default_str();
  command.add_option("--scan-length", options.scan_length, "Largest number of records of a scan")
      ->capture_default_str();
  command.add_option("--distribution", options.distribution,
                     "Choice of keys: uniform, zipfian or latest [the workload's]");
  command.add_option("--theta", options.theta, "Skew of zipfian and latest")->capture_default_str();
  command.add_option("--remote-percent", options.remote_percent,
                     "Percentage of operations on records of another node [equal on all nodes]");
  command.add_option("--storage", options.storage, "Type of the storage: mastertree or array")
      ->capture_default_str();
  command
      .add_option("--insert-order", options.insert_order,
                  "Keys of inserted records: hashed or ordered")
      ->capture_default_str();
  command.add_flag("--prefetch,!--no-prefetch", options.prefetch,
                   "Prefetch the records of the next transactions, 16 operations at a time, before "
                   "they run [on]");
  command.add_flag("--blind-updates", options.blind_updates,
                   "Updates overwrite whole records without reading them (mastertree only). The "
                   "check after the runs then cannot detect lost updates");
  add_common_options(command, options, "Check every record after the runs");
}

}  // namespace

void add_ycsb_command(CLI::App& group, Invocation& invocation) {
  const auto options = std::make_shared<ycsb::Options>();
  CLI::App* command = add_cluster_command(
      group, invocation, "ycsb",
      "Run YCSB on a running cluster, or on one that it starts and stops", options, bench_ycsb);
  add_set_option(*command, invocation.choice.settings);
  add_options(*command, *options);
}

}  // namespace atolldb::cli
