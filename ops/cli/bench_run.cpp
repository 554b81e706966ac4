#include "ops/cli/bench_run.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bench/driver/compare.h"
#include "ops/cli/bench_cluster.h"
#include "ops/cli/connected_cluster.h"
#include "ops/cli/running_cluster.h"
#include "ops/cli/terminal.h"
#include "shared/base/try.h"
#include "shared/process/start_up.h"

namespace atolldb::cli {
namespace {

/// `option`: name of the option with the path. An empty path is valid.
Result<void> check_output_file(const char* option, const std::string& path) {
  if (path.empty() || std::ofstream(path, std::ios::app)) return {};
  return make_error(ExitCode::usage,
                    std::string(option) + " " + path + ": cannot be written: give another path");
}

Result<void> write_text_file(const char* option, const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::trunc);
  file << text;
  if (file.flush()) return {};
  return make_error(ExitCode::failed, std::string(option) + " " + path +
                                          ": cannot be written: check the path and the free space");
}

uint32_t workers_of(const Config& config) {
  uint32_t workers = 0;
  for (const NodeConfig& node : config.nodes) workers += node.workers;
  return workers;
}

/// Prints the report, compares it, and writes its files.
Result<void> give_report(const BenchReport& report, const bench::CommonOptions& options) {
  std::printf("%s%s", is_terminal() ? "\r\033[K" : "", report.text.c_str());
  std::fflush(stdout);
  ATOLL_TRY(write_json_file(options.json_file, report.json));
  ATOLL_TRY(write_text_file("--histogram", options.histogram_file, report.histograms));
  if (options.compare_file.empty()) return {};
  ATOLL_ASSIGN(const auto earlier, bench::read_report(options.compare_file));
  ATOLL_ASSIGN(const std::string text,
               bench::compare_text(earlier, report.json, options.compare_file));
  std::printf("%s", text.c_str());
  return {};
}

Result<void> outcome_of(ExitCode code, const std::string& command, const std::string& violated) {
  if (code == ExitCode::success) return {};
  return make_error(code, command + (code == ExitCode::corruption
                                         ? ": " + violated + ": see above"
                                         : ": the run ended early: see above: lower --seconds or "
                                           "raise memory.volatile_pool"));
}

/// Checks the files before the run.
Result<void> check_report_files(const bench::CommonOptions& options) {
  ATOLL_TRY(check_output_file("--json", options.json_file));
  ATOLL_TRY(check_output_file("--histogram", options.histogram_file));
  if (options.compare_file.empty()) return {};
  ATOLL_TRY(bench::read_report(options.compare_file));
  return {};
}

Result<void> run_on(BenchPort& port, const Benchmark& benchmark) {
  ATOLL_ASSIGN(const BenchReport report, benchmark.run(port, make_console()));
  ATOLL_TRY(give_report(report, benchmark.options));
  return outcome_of(report.code, benchmark.command, benchmark.violated);
}

Result<void> run_verb_on(BenchPort& port, BenchVerb verb, const BenchVerbs& verbs,
                         const bench::CommonOptions& options) {
  switch (verb) {
    case BenchVerb::prepare:
      return verbs.prepare(port, make_console());
    case BenchVerb::run: {
      ATOLL_ASSIGN(const BenchReport report, verbs.run(port, make_console()));
      ATOLL_TRY(give_report(report, options));
      return outcome_of(report.code, verbs.command, verbs.violated);
    }
    case BenchVerb::verify: {
      ATOLL_ASSIGN(const bench::ReportHead head, verbs.verify(port, make_console()));
      std::printf("%s", bench::verify_text(head, verbs.holds).c_str());
      return outcome_of(bench::exit_code_of(head, false), verbs.command, verbs.violated);
    }
    case BenchVerb::cleanup: {
      ATOLL_ASSIGN(const uint32_t dropped, verbs.clean_up(port));
      std::printf("dropped %u storages\n", dropped);
      return {};
    }
  }
  return {};
}

/// Launches a cluster, uses it and stops it. Returns the result of `use`. Returns an error if the
/// cluster did not start or one of its processes died. The caller then keeps the log and the data.
Result<Result<void>> on_launched(const Config& config, const UniqueFd& signals,
                                 const std::function<Result<void>(Cluster&)>& use) {
  ATOLL_ASSIGN(const auto cluster, Cluster::launch(config, LaunchMode::process));
  const Result<void> used = [&] {
    const InterruptWatch watch(*cluster, signals);
    return use(*cluster);
  }();
  ATOLL_TRY(cluster->shutdown());
  return used;
}

/// Returns an error if the cluster of `prepare` would not keep its data.
Result<void> check_that_data_last(const Config& config, const Benchmark& benchmark) {
  if (!benchmark.prepare || config.durability.mode == DurabilityMode::durable) return {};
  return make_error(ExitCode::usage, benchmark.command + ": --cold: with durability " +
                                         durability_text(config) +
                                         " the load is lost when its cluster ends: use "
                                         "--durability durable");
}

/// Sizes the pools from the estimate, unless there is a config file, or their size is set.
Result<Config> size_pools(Config config, const ClusterChoice& choice, const Benchmark& benchmark) {
  const auto nodes = static_cast<uint32_t>(config.nodes.size());
  const auto cores = static_cast<uint32_t>(Machine::detect().cpus.size());
  ATOLL_ASSIGN(const auto estimate, benchmark.estimate(nodes, workers_of(config), cores));
  std::printf("%s\n", estimate.text(nodes).c_str());
  const auto is_free = [&](const char* key) {
    return choice.config_file.empty() && config.memory.total == 0 && !config.origins.contains(key);
  };
  if (is_free("memory.volatile_pool")) {
    config.memory.volatile_pool = estimate.pool_bytes;
  } else if (config.memory.volatile_pool < estimate.pool_bytes) {
    std::printf("memory.volatile_pool is %s, but the estimate is %s: the run may end early\n",
                format_bytes(config.memory.volatile_pool).c_str(),
                format_bytes(estimate.pool_bytes).c_str());
  }
  // A size of the pool that is set does not size the cache.
  if (benchmark.prepare && is_free("memory.snapshot_cache")) {
    config.memory.snapshot_cache = std::max(config.memory.snapshot_cache, estimate.cache_bytes);
  }
  if (benchmark.prepare && config.memory.snapshot_cache < estimate.cache_bytes) {
    std::printf("memory.snapshot_cache is %s, but the tables take up to %s: pages are evicted\n",
                format_bytes(config.memory.snapshot_cache).c_str(),
                format_bytes(estimate.cache_bytes).c_str());
  }
  // The command line has changed the config, so it is checked again.
  auto checked = parse_config(to_toml(config), benchmark.command, Machine::detect());
  if (checked) return *std::move(checked);
  std::string mistakes;
  for (const ConfigError& error : checked.error()) {
    mistakes += (mistakes.empty() ? "" : "; ") + error.key + ": expected " + error.expected +
                ", got " + error.got;
  }
  return make_error(ExitCode::config, benchmark.command + ": " + mistakes +
                                          ": lower --nodes, --workers-per-node, " +
                                          benchmark.what_to_lower);
}

}  // namespace

bench::Console make_console() {
  bench::Console console;
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

Result<void> check_json_file(const std::string& path) { return check_output_file("--json", path); }

Result<void> write_json_file(const std::string& path, const nlohmann::json& json) {
  if (path.empty()) return {};
  return write_text_file("--json", path,
                         json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Result<void> run_on_own_cluster(const ClusterChoice& choice, const Benchmark& benchmark) {
  ATOLL_ASSIGN(const Config wanted,
               config_of_bench_cluster(choice, benchmark.cluster_name, benchmark.options));
  const auto remove_folders = [&] {
    std::error_code ignored;
    for (const std::string& folder : own_folders(choice, wanted)) {
      std::filesystem::remove_all(folder, ignored);
    }
  };
  for (const UnusedSetting& setting : unused_settings(wanted)) {
    std::printf("warning: %s\n", to_string(setting).c_str());
  }
  const auto lasts = check_that_data_last(wanted, benchmark);
  const Result<Config> config =
      lasts ? size_pools(wanted, choice, benchmark) : std::unexpected(lasts.error());
  if (!config) {
    remove_folders();
    return std::unexpected(config.error());
  }
  ATOLL_ASSIGN(const UniqueFd signals, receive_signals({SIGINT, SIGTERM}));
  Result<void> done;
  if (benchmark.prepare) {
    ATOLL_ASSIGN(const auto prepared, on_launched(*config, signals, [&](Cluster& cluster) {
                   BenchPort port(cluster);
                   return benchmark.prepare(port, make_console());
                 }));
    done = prepared;
  }
  if (done) {
    ATOLL_ASSIGN(const auto ran, on_launched(*config, signals, [&](Cluster& cluster) {
                   BenchPort port(cluster);
                   return run_on(port, benchmark);
                 }));
    done = ran;
  }
  if (done && benchmark.after_stop) done = benchmark.after_stop(*config);
  remove_folders();
  return done;
}

void add_common_options(CLI::App& command, bench::CommonOptions& options,
                        const std::string& verify_help) {
  command.add_option("--nodes", options.nodes,
                     "Node processes of the cluster that the benchmark starts");
  command.add_option("--workers-per-node", options.workers_per_node, "Workers of each node");
  add_run_options(command, options);
  command.add_option("--durability", options.durability,
                     "durable, off, or measure, which discards the log [the config's value]");
  command.add_flag("--verify,!--no-verify", options.verify, verify_help + " (default)");
}

void add_run_options(CLI::App& command, bench::CommonOptions& options) {
  command.add_option("--seconds", options.seconds, "Measured seconds of each run")
      ->capture_default_str();
  command
      .add_option("--warmup", options.warmup_seconds,
                  "Seconds of warm-up before the first measurement")
      ->capture_default_str();
  command.add_option("--repeat", options.repeat, "Number of runs; the report shows the median")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of all random inputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_report_options(command, options);
}

void add_report_options(CLI::App& command, bench::CommonOptions& options) {
  command.add_option("--json", options.json_file, "Also write the report to this file")
      ->type_name("FILE");
  command
      .add_option("--histogram", options.histogram_file,
                  "Write the latencies of the median run by bucket: CSV if the name ends in .csv, "
                  "else JSON")
      ->type_name("FILE");
  command
      .add_option(
          "--compare", options.compare_file,
          "Compare with a report that --json has written, with a confidence interval of the "
          "throughput")
      ->type_name("FILE");
}

void add_client_options(CLI::App& command, bench::ClientOptions& clients) {
  command.add_option(
      "--client", clients.client,
      "What runs the transactions: node (jobs on the workers), local (clients of this "
      "process, through shared memory) or network (clients over TCP) [node; network "
      "with --connect]");
  clients.client.clear();  // bench_target chooses it
  command.add_option("--clients", clients.clients, "Number of clients; 0: one per worker")
      ->capture_default_str();
  command.add_option("--pipeline", clients.pipeline, "Requests in flight of each client")
      ->capture_default_str();
  command
      .add_option("--acknowledge", clients.acknowledge,
                  "When a request of a client counts: durable or visible")
      ->capture_default_str();
  add_bench_key_file_option(command, clients);
}

void add_bench_key_file_option(CLI::App& command, bench::ClientOptions& clients) {
  command
      .add_option("--key-file", clients.key_file,
                  "Keys of network clients, from `atoll keys generate`; not for nodes without keys")
      ->type_name("FILE");
}

void add_bench_connect_option(CLI::App& command, bench::CommonOptions& options) {
  CLI::Option* const connect =
      command
          .add_option("--connect", options.connect,
                      "A running cluster, by the connection strings of all its nodes: one "
                      "--connect for each. Or atoll:///RUN_DIR or atoll:NAME")
          ->allow_extra_args(false)
          ->type_name("WHERE");
  exclude_cluster_options(command, *connect);
  for (const char* const own :
       {"--set", "--nodes", "--workers-per-node", "--durability", "--cold"}) {
    CLI::Option* const other = command.get_option_no_throw(own);
    if (other != nullptr) connect->excludes(other);
  }
}

Result<BenchTarget> bench_target(const ClusterChoice& choice, const std::string& command,
                                 const bench::CommonOptions& options,
                                 bench::ClientOptions& clients) {
  BenchTarget target{choice, {}, !options.connect.empty()};
  for (const std::string& where : options.connect) {
    const std::string key_file = where.starts_with("atoll+tcp:") ? clients.key_file : "";
    ATOLL_ASSIGN(NodePlace place,
                 node_place_of(choice, NodeChoice{0, where, key_file},
                               {.instead_of_acknowledge = "use --acknowledge visible instead"}));
    if (place.network) {
      target.nodes.push_back(*std::move(place.network));
    } else {
      target.choice = std::move(place.choice);
    }
  }
  if (options.connect.size() > 1 && target.nodes.size() != options.connect.size()) {
    return make_error(ExitCode::usage, command +
                                           ": --connect: a cluster of this machine needs only one: "
                                           "give its run folder or name alone");
  }
  ATOLL_TRY(bench::choose_client(command, !target.nodes.empty(), clients));
  return target;
}

void let_verbs_run(CLI::App& command, Invocation& invocation,
                   const std::function<Result<void>()>& run) {
  command.require_subcommand(0, 1);
  command.callback([&command, &invocation, run] {
    if (command.get_subcommands().empty()) invocation.run = run;
  });
}

Result<void> run_bench_verb(const BenchTarget& target, BenchVerb verb, const BenchVerbs& verbs,
                            const bench::CommonOptions& options) {
  ATOLL_TRY(check_report_files(options));
  if (!target.nodes.empty()) {
    ATOLL_ASSIGN(const auto connected, ConnectedCluster::connect(target.nodes, verbs.command));
    ConnectedPort port(*connected);
    return run_verb_on(port, verb, verbs, options);
  }
  ATOLL_ASSIGN(const Config config, find_running(target.choice));
  RunningCluster cluster(config);
  BenchPort port(cluster);
  return run_verb_on(port, verb, verbs, options);
}

Result<void> run_benchmark(const BenchTarget& target, const Benchmark& benchmark) {
  ATOLL_TRY(check_report_files(benchmark.options));
  if (!target.nodes.empty()) {
    ATOLL_ASSIGN(const auto connected, ConnectedCluster::connect(target.nodes, benchmark.command));
    ConnectedPort port(*connected);
    return run_on(port, benchmark);
  }
  if (target.is_named) {
    ATOLL_TRY(find_running(target.choice));  // --connect never starts a cluster
  }
  ATOLL_ASSIGN(const auto running,
               find_bench_cluster(target.choice, benchmark.command, benchmark.options));
  if (running == nullptr) return run_on_own_cluster(target.choice, benchmark);
  if (benchmark.prepare) {
    return make_error(ExitCode::usage, benchmark.command + ": cluster \"" +
                                           running->config().cluster.name +
                                           "\" runs: --cold is only for a cluster that the "
                                           "benchmark starts: stop it, or leave --cold out");
  }
  std::printf("using the running cluster \"%s\"\n", running->config().cluster.name.c_str());
  BenchPort port(*running);
  return run_on(port, benchmark);
}

}  // namespace atolldb::cli
