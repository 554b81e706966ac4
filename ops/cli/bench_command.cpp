// `atoll bench tpcc`: loads, runs and verifies TPC-C, and reports.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/tpcc_driver/driver.h"
#include "bench/tpcc_driver/estimate.h"
#include "ops/cli/bench_cluster.h"
#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "shared/process/start_up.h"

namespace atolldb::cli {
namespace {

struct BenchOptions {
  tpcc::Options tpcc;
  std::string mix = tpcc::format_mix(tpcc::Options{}.mix);
};

tpcc::Console make_console() {
  tpcc::Console console;
  console.line = [](const std::string& text) {
    std::printf("%s%s\n", is_terminal() ? "\r\033[K" : "", text.c_str());
    std::fflush(stdout);
  };
  console.progress = [](const std::string& text) {
    is_terminal() ? std::printf("\r\033[K%s", text.c_str()) : std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  };
  return console;
}

uint32_t workers_of(const Config& config) {
  uint32_t workers = 0;
  for (const NodeConfig& node : config.nodes) workers += node.workers;
  return workers;
}

/// Before the run rather than after it.
Result<void> check_json_file(const std::string& path) {
  if (path.empty() || std::ofstream(path, std::ios::app)) return {};
  return make_error(ExitCode::usage, "--json " + path + ": cannot be written: give another path");
}

Result<void> report(const tpcc::Report& report, const std::string& json_file) {
  std::printf("%s%s", is_terminal() ? "\r\033[K" : "", report.text().c_str());
  if (!json_file.empty()) {
    std::ofstream file(json_file, std::ios::trunc);
    file << report.json().dump(2) << "\n";
    if (!file.flush()) {
      return make_error(ExitCode::failed, "--json " + json_file +
                                              ": cannot be written: is the "
                                              "disk full?");
    }
  }
  const ExitCode code = tpcc::exit_code_of(report);
  if (code == ExitCode::success) return {};
  return make_error(code, code == ExitCode::corruption
                              ? "bench tpcc: consistency conditions are violated: see above"
                              : "bench tpcc: the run ended early: see above: lower --seconds or "
                                "raise memory.volatile_pool");
}

Result<void> run_on(Cluster& cluster, const tpcc::Options& options) {
  BenchPort port(cluster);
  const auto warehouses = tpcc::choose_warehouses(options, port.node_count(), port.worker_count());
  if (!warehouses) return std::unexpected(warehouses.error());
  tpcc::Driver driver(port, options, *warehouses, make_console());
  const Result<tpcc::Report> done = driver.go();
  if (!done) return std::unexpected(done.error());
  return report(*done, options.json_file);
}

/// Sizes the pools from the estimate, unless a file has said how large they are.
Result<Config> size_pools(Config config, const ClusterChoice& choice,
                          const tpcc::Options& options) {
  const auto nodes = static_cast<uint32_t>(config.nodes.size());
  const uint32_t workers = workers_of(config);
  const auto warehouses = tpcc::choose_warehouses(options, nodes, workers);
  if (!warehouses) return std::unexpected(warehouses.error());
  const auto cores = static_cast<uint32_t>(Machine::detect().cpus.size());
  const tpcc::Estimate estimate =
      tpcc::estimate_memory(options, *warehouses, nodes, workers, cores);
  std::printf("%s\n", estimate.text(nodes).c_str());
  if (choice.config_file.empty()) {
    config.memory.volatile_pool = estimate.pool_bytes;
  } else if (config.memory.volatile_pool < estimate.pool_bytes) {
    std::printf("memory.volatile_pool is %s: the run may end early\n",
                format_bytes(config.memory.volatile_pool).c_str());
  }
  // Changed by the command line: valid still?
  auto checked = parse_config(to_toml(config), "bench tpcc", Machine::detect());
  if (checked) return *std::move(checked);
  std::string mistakes;
  for (const ConfigError& error : checked.error()) {
    mistakes += (mistakes.empty() ? "" : "; ") + error.key + ": expected " + error.expected +
                ", got " + error.got;
  }
  return make_error(ExitCode::config, "bench tpcc: " + mistakes +
                                          ": lower --nodes, --workers-per-node, --warehouses or "
                                          "--seconds");
}

Result<void> run_on_own_cluster(const ClusterChoice& choice, const tpcc::Options& options) {
  const Result<Config> wanted = config_of_bench_cluster(choice, options);
  if (!wanted) return std::unexpected(wanted.error());
  const auto remove_logs = [&] {
    std::error_code ignored;
    if (choice.config_file.empty()) std::filesystem::remove_all(wanted->cluster.log_dir, ignored);
  };
  const Result<Config> config = size_pools(*wanted, choice, options);
  if (!config) {
    remove_logs();
    return std::unexpected(config.error());
  }
  const Result<UniqueFd> signals = receive_signals({SIGINT, SIGTERM});
  if (!signals) return std::unexpected(signals.error());
  const auto cluster = Cluster::launch(*config, LaunchMode::process);
  if (!cluster) return std::unexpected(cluster.error());
  Result<void> done = [&] {
    const InterruptWatch watch(**cluster, *signals);
    return run_on(**cluster, options);
  }();
  const Result<void> stopped = (*cluster)->shutdown();
  if (!stopped) return stopped;  // a process died: its log stays
  remove_logs();
  return done;
}

Result<void> bench(const ClusterChoice& choice, const BenchOptions& given) {
  tpcc::Options options = given.tpcc;
  const auto mix = tpcc::parse_mix(given.mix);
  if (!mix) return std::unexpected(mix.error());
  options.mix = *mix;
  if (const auto checked = tpcc::check_options(options); !checked) return checked;
  if (const auto checked = check_json_file(options.json_file); !checked) return checked;
  const auto running = find_bench_cluster(choice, options);
  if (!running) return std::unexpected(running.error());
  if (*running == nullptr) return run_on_own_cluster(choice, options);
  std::printf("on the running cluster \"%s\"\n", (*running)->config().cluster.name.c_str());
  return run_on(**running, options);
}

void add_options(CLI::App& command, BenchOptions& options) {
  tpcc::Options& tpcc = options.tpcc;
  command.add_option("--nodes", tpcc.nodes, "Node processes of an own cluster");
  command.add_option("--workers-per-node", tpcc.workers_per_node, "Workers of each node");
  command.add_option("--warehouses", tpcc.warehouses, "0: one per worker")->capture_default_str();
  command.add_option("--seconds", tpcc.seconds, "Measured time")->capture_default_str();
  command.add_option("--warmup", tpcc.warmup_seconds, "Time before it")->capture_default_str();
  command.add_option("--repeat", tpcc.repeat, "Runs; the median counts")->capture_default_str();
  command
      .add_option("--remote-percent", tpcc.remote_percent,
                  "Order lines from another warehouse, in percent")
      ->capture_default_str();
  command
      .add_option("--remote-payment-percent", tpcc.remote_payment_percent,
                  "Payments for a customer of another warehouse, in percent")
      ->capture_default_str();
  command
      .add_option("--mix", options.mix,
                  "Percent of new-order/payment/order-status/delivery/stock-level")
      ->capture_default_str();
  command.add_option("--seed", tpcc.seed, "Of all random inputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--durability", tpcc.durability, "off or durable")->capture_default_str();
  command.add_flag("--verify,!--no-verify", tpcc.verify,
                   "Check consistency conditions 1-12 afterwards (default)");
  command.add_option("--json", tpcc.json_file, "Write the report there, too")->type_name("FILE");
}

}  // namespace

void add_bench_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("bench", "Run a benchmark");
  group->require_subcommand(1);
  CLI::App* command = group->add_subcommand(
      "tpcc", "TPC-C on a running cluster, else on one that it starts and stops");
  add_cluster_options(*command, invocation);
  const auto options = std::make_shared<BenchOptions>();
  add_options(*command, *options);
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] { return bench(invocation.choice, *options); };
  });
}

}  // namespace atolldb::cli
