// `atoll bench tpcc`: loads, runs and verifies TPC-C, and reports.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/driver/histogram_file.h"
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

BenchReport tpcc_report(const tpcc::Report& report) {
  const std::string& path = report.options.histogram_file;
  return {report.text(), report.json(), bench::exit_code_of(report),
          path.empty()
              ? ""
              : bench::histograms_text(path, "tpcc", report.median_run(), tpcc::kTransactionNames)};
}

Result<BenchReport> run_tpcc(const tpcc::Options& options, bench::ClusterPort& port,
                             const bench::Console& console) {
  ATOLL_ASSIGN(tpcc::Driver driver, make_driver(options, port, console));
  ATOLL_ASSIGN(const tpcc::Report report, options.cold ? driver.resume() : driver.go());
  return tpcc_report(report);
}

/// Sets `target`, and returns the checked options.
Result<tpcc::Options> checked_options(const ClusterChoice& choice, const TpccOptions& given,
                                      BenchTarget& target) {
  tpcc::Options options = given.tpcc;
  ATOLL_ASSIGN(target, bench_target(choice, tpcc::kCommand, options, options.clients));
  ATOLL_ASSIGN(options.mix, tpcc::parse_mix(given.mix));
  ATOLL_TRY(tpcc::check_options(options));
  return options;
}

Result<void> run_tpcc_verb(const ClusterChoice& choice, const TpccOptions& given, BenchVerb verb) {
  BenchTarget target;
  ATOLL_ASSIGN(const tpcc::Options options, checked_options(choice, given, target));
  return run_bench_verb(
      target, verb,
      {.command = tpcc::kCommand,
       .violated = "consistency conditions are violated",
       .holds = "consistency conditions 1-12 hold for all warehouses",
       .prepare = [&](auto& port,
                      const auto& console) { return tpcc::prepare(port, options, console); },
       .run = [&](auto& port, const auto& console) -> Result<BenchReport> {
         ATOLL_ASSIGN(const tpcc::Report report, tpcc::run_prepared(port, options, console));
         return tpcc_report(report);
       },
       .verify = [](auto& port,
                    const auto& console) { return tpcc::verify_prepared(port, console); },
       .clean_up = tpcc::clean_up},
      options);
}

Result<void> bench_tpcc(const ClusterChoice& choice, const TpccOptions& given) {
  BenchTarget target;
  ATOLL_ASSIGN(const tpcc::Options options, checked_options(choice, given, target));
  std::function<Result<void>(bench::ClusterPort&, const bench::Console&)> prepare;
  if (options.cold) {
    prepare = [&](bench::ClusterPort& port, const bench::Console& console) -> Result<void> {
      Result<tpcc::Driver> driver = make_driver(options, port, console);
      return driver ? driver->load_database() : std::unexpected(driver.error());
    };
  }
  return run_benchmark(
      target,
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

void add_tpcc_load_options(CLI::App& command, tpcc::Options& tpcc) {
  command.add_option("--warehouses", tpcc.warehouses, "Number of warehouses; 0: one per worker")
      ->capture_default_str();
  command
      .add_option("--loaded-lines", tpcc.scale.max_lines,
                  "Largest number of lines of a loaded order; more than 15 is not TPC-C, but makes "
                  "order-status scan more")
      ->capture_default_str();
  command.add_flag("--hash-orders", tpcc.scale.hash_orders,
                   "Keep the orders, which are only looked up by whole keys, in a hash storage");
}

void add_tpcc_run_options(CLI::App& command, TpccOptions& options) {
  tpcc::Options& tpcc = options.tpcc;
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
      .add_option("--think-time", tpcc.think_scale,
                  "Ten terminals per warehouse with this factor of the specification's keying and "
                  "think times; 0: no terminals. With clients, each request that a client may have "
                  "in flight is a terminal")
      ->type_name("FACTOR")
      ->capture_default_str();
  add_client_options(command, tpcc.clients);
}

void add_options(CLI::App& command, TpccOptions& options) {
  add_common_options(command, options.tpcc, "Check consistency conditions 1-12 after the runs");
  add_tpcc_load_options(command, options.tpcc);
  add_tpcc_run_options(command, options);
  command.add_flag("--cold", options.tpcc.cold,
                   "Restart the cluster after the load, so that all data are in a snapshot; only "
                   "for a durable cluster that the benchmark starts");
  add_bench_connect_option(command, options.tpcc);
}

/// Adds a subcommand for one phase.
CLI::App* add_tpcc_verb(CLI::App& group, Invocation& invocation, const char* name, const char* help,
                        const std::shared_ptr<TpccOptions>& options, BenchVerb verb) {
  CLI::App* const command =
      add_cluster_command(group, invocation, name, help, options,
                          [verb](const ClusterChoice& choice, const TpccOptions& given) {
                            return run_tpcc_verb(choice, given, verb);
                          });
  add_bench_connect_option(*command, options->tpcc);
  // The options of a run have the file of keys, too.
  if (verb != BenchVerb::run) add_bench_key_file_option(*command, options->tpcc.clients);
  return command;
}

}  // namespace

void add_tpcc_command(CLI::App& group, Invocation& invocation) {
  const auto options = std::make_shared<TpccOptions>();
  CLI::App* command = add_cluster_command(
      group, invocation, "tpcc",
      "Run TPC-C on a running cluster, or on one that it starts and stops", options, bench_tpcc);
  let_verbs_run(*command, invocation,
                [&invocation, options] { return bench_tpcc(invocation.choice, *options); });
  add_set_option(*command, invocation.choice.settings);
  add_options(*command, *options);
  const auto own = std::make_shared<TpccOptions>();
  CLI::App* prepare = add_tpcc_verb(*command, invocation, "prepare",
                                    "Load the database into a running cluster, to stay there", own,
                                    BenchVerb::prepare);
  add_tpcc_load_options(*prepare, own->tpcc);
  prepare->add_option("--seed", own->tpcc.seed, "Seed of the rows")->capture_default_str();
  CLI::App* run =
      add_tpcc_verb(*command, invocation, "run", "Run on the prepared database; may be repeated",
                    own, BenchVerb::run);
  add_run_options(*run, own->tpcc);
  add_tpcc_run_options(*run, *own);
  run->add_flag("--verify", own->tpcc.verify, "Check consistency conditions 1-12 after the runs");
  add_tpcc_verb(*command, invocation, "verify",
                "Check consistency conditions 1-12 of the prepared database", own,
                BenchVerb::verify);
  add_tpcc_verb(*command, invocation, "cleanup", "Drop the storages of the benchmark", own,
                BenchVerb::cleanup);
  own->tpcc.verify = false;
}

}  // namespace atolldb::cli
