// Shared parts of the commands `atoll bench ...`: options, cluster, report.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/driver/client_options.h"
#include "bench/driver/cluster_port.h"
#include "bench/driver/estimate.h"
#include "bench/driver/options.h"
#include "bench/driver/phases.h"
#include "bench/driver/report.h"
#include "ops/cli/command.h"
#include "ops/cli/kv_options.h"
#include "shared/base/error.h"

namespace atolldb::cli {

void add_tpcc_command(CLI::App& group, Invocation& invocation);
void add_ycsb_command(CLI::App& group, Invocation& invocation);
void add_log_bench_command(CLI::App& group, Invocation& invocation);
void add_gleaner_bench_command(CLI::App& group, Invocation& invocation);

struct BenchReport {
  std::string text;
  nlohmann::json json;
  ExitCode code;
  std::string histograms = {};  // content of --histogram; empty: not asked for
};

/// The running cluster that the options name: of this machine, or in the network.
struct BenchTarget {
  ClusterChoice choice{};                 // without `nodes`
  std::vector<ConnectionTarget> nodes{};  // in the network
  bool is_named = false;                  // --connect was given
};
/// Returns the target, and chooses the kind of client for it. `command`: prefix of errors. Errors:
/// usage.
Result<BenchTarget> bench_target(const ClusterChoice& choice, const std::string& command,
                                 const bench::CommonOptions& options,
                                 bench::ClientOptions& clients);

/// One benchmark, with checked options.
struct Benchmark {
  std::string command;       // prefix of error messages: "bench tpcc"
  std::string cluster_name;  // name of the benchmark's own cluster
  bench::CommonOptions options;
  std::string what_to_lower;  // options to lower if memory is short: "--warehouses or --seconds"
  std::string violated;       // text for a failed verification
  std::function<Result<bench::Estimate>(uint32_t nodes, uint32_t workers, uint32_t cores)> estimate;
  std::function<Result<BenchReport>(bench::ClusterPort& port, const bench::Console& console)> run;
  /// May be empty. Runs before `run`, on a cluster that is stopped afterwards. `run` then gets a
  /// second cluster with the same data.
  std::function<Result<void>(bench::ClusterPort& port, const bench::Console& console)> prepare = {};
  /// May be empty. Called after a successful run, when the benchmark's own cluster has stopped. The
  /// data of the cluster still exist.
  std::function<Result<void>(const Config& config)> after_stop = {};
};

/// Adds the options that all benchmarks share.
void add_common_options(CLI::App& command, bench::CommonOptions& options,
                        const std::string& verify_help);

/// Adds the options of a run: times, seed, and the files of the report.
void add_run_options(CLI::App& command, bench::CommonOptions& options);
/// Adds --json, --histogram and --compare.
void add_report_options(CLI::App& command, bench::CommonOptions& options);

/// Adds --connect, which excludes the options of a cluster that the benchmark starts. REQUIRES: the
/// command has those options and the ones of add_cluster_options.
void add_bench_connect_option(CLI::App& command, bench::CommonOptions& options);
/// Adds --key-file.
void add_bench_key_file_option(CLI::App& command, bench::ClientOptions& clients);

/// Adds the options of clients: --client, --clients, --pipeline, --acknowledge and --key-file.
void add_client_options(CLI::App& command, bench::ClientOptions& clients);

/// Runs on the running cluster. If there is none, and --connect names none, starts a cluster and
/// stops it afterwards.
Result<void> run_benchmark(const BenchTarget& target, const Benchmark& benchmark);
Result<void> run_on_own_cluster(const ClusterChoice& choice, const Benchmark& benchmark);

/// The phases one by one, on a running cluster.
struct BenchVerbs {
  using Port = bench::ClusterPort;
  std::string command;  // prefix of error messages: "bench tpcc"
  std::string violated;
  std::string holds;  // text if the verification finds nothing
  std::function<Result<void>(Port& port, const bench::Console& console)> prepare;
  std::function<Result<BenchReport>(Port& port, const bench::Console& console)> run;
  std::function<Result<bench::ReportHead>(Port& port, const bench::Console& console)> verify;
  std::function<Result<uint32_t>(Port& port)> clean_up;
};
enum class BenchVerb { prepare, run, verify, cleanup };
/// `options`: those with the files of the report.
Result<void> run_bench_verb(const BenchTarget& target, BenchVerb verb, const BenchVerbs& verbs,
                            const bench::CommonOptions& options);

/// Makes `command` do nothing itself if one of its subcommands is given.
void let_verbs_run(CLI::App& command, Invocation& invocation,
                   const std::function<Result<void>()>& run);

/// Returns a console whose progress lines replace each other on a terminal.
bench::Console make_console();
/// Checks before the run that the file can be written. An empty path is valid; then no file is
/// written.
Result<void> check_json_file(const std::string& path);
Result<void> write_json_file(const std::string& path, const nlohmann::json& json);

}  // namespace atolldb::cli
