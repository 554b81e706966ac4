// `atoll bench tpcc`: loads, runs and verifies TPC-C, and reports.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/tpcc_driver/driver.h"
#include "bench/tpcc_driver/estimate.h"
#include "ops/cli/bench_run.h"
#include "ops/cli/command.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

struct TpccOptions {
  tpcc::Options tpcc;
  std::string mix = tpcc::format_mix(tpcc::Options{}.mix);
};

Result<tpcc::Driver> make_driver(const tpcc::Options& options, bench::ClusterPort& port,
                                 const bench::Console& console) {
  ATOLL_ASSIGN(const auto warehouses,
               tpcc::choose_warehouses(options, port.node_count(), port.worker_count()));
  return tpcc::Driver(port, options, warehouses, console);
}

Result<BenchReport> run_tpcc(const tpcc::Options& options, bench::ClusterPort& port,
                             const bench::Console& console) {
  ATOLL_ASSIGN(tpcc::Driver driver, make_driver(options, port, console));
  ATOLL_ASSIGN(const tpcc::Report report, options.cold ? driver.resume() : driver.go());
  return BenchReport{report.text(), report.json(), bench::exit_code_of(report)};
}

Result<void> bench_tpcc(const ClusterChoice& choice, const TpccOptions& given) {
  tpcc::Options options = given.tpcc;
  ATOLL_ASSIGN(const auto mix, tpcc::parse_mix(given.mix));
  options.mix = mix;
  ATOLL_TRY(tpcc::check_options(options));
  std::function<Result<void>(bench::ClusterPort&, const bench::Console&)> prepare;
  if (options.cold) {
    prepare = [&](bench::ClusterPort& port, const bench::Console& console) -> Result<void> {
      Result<tpcc::Driver> driver = make_driver(options, port, console);
      return driver ? driver->load_database() : std::unexpected(driver.error());
    };
  }
  return run_benchmark(
      choice,
      {.command = tpcc::kCommand,
       .cluster_name = "tpcc-bench",
       .options = options,
       .what_to_lower = "--warehouses or --seconds",
       .violated = "consistency conditions are violated",
       .estimate = [&](uint32_t nodes, uint32_t workers,
                       uint32_t cores) -> Result<bench::Estimate> {
         ATOLL_ASSIGN(const auto warehouses, tpcc::choose_warehouses(options, nodes, workers));
         return tpcc::estimate_memory(options, warehouses, nodes, workers, cores);
       },
       .run = [&](bench::ClusterPort& port,
                  const bench::Console& console) { return run_tpcc(options, port, console); },
       .prepare = prepare});
}

void add_options(CLI::App& command, TpccOptions& options) {
  tpcc::Options& tpcc = options.tpcc;
  add_common_options(command, tpcc, "Check consistency conditions 1-12 after the runs");
  command.add_option("--warehouses", tpcc.warehouses, "Number of warehouses; 0: one per worker")
      ->capture_default_str();
  command
      .add_option("--remote-percent", tpcc.remote_percent,
                  "Percentage of order lines from another warehouse")
      ->capture_default_str();
  command
      .add_option("--remote-payment-percent", tpcc.remote_payment_percent,
                  "Percentage of payments for a customer of another warehouse")
      ->capture_default_str();
  command
      .add_option("--mix", options.mix,
                  "Percentages of new-order/payment/order-status/delivery/stock-level")
      ->capture_default_str();
  command
      .add_option("--loaded-lines", tpcc.scale.max_lines,
                  "Largest number of lines of a loaded order; more than 15 is not TPC-C, but makes "
                  "order-status scan more")
      ->capture_default_str();
  command.add_flag("--cold", tpcc.cold,
                   "Restart the cluster after the load, so that all data are in a snapshot; only "
                   "for a durable cluster that the benchmark starts");
}

}  // namespace

void add_tpcc_command(CLI::App& group, Invocation& invocation) {
  const auto options = std::make_shared<TpccOptions>();
  CLI::App* command = add_cluster_command(
      group, invocation, "tpcc",
      "Run TPC-C on a running cluster, or on one that it starts and stops", options, bench_tpcc);
  add_set_option(*command, invocation.choice.settings);
  add_options(*command, *options);
}

}  // namespace atolldb::cli
