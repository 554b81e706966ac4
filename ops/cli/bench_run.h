// What the commands `atoll bench ...` have in common: options, the cluster, the report.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/driver/cluster_port.h"
#include "bench/driver/estimate.h"
#include "bench/driver/options.h"
#include "bench/driver/phases.h"
#include "ops/cli/command.h"
#include "shared/error.h"

namespace atolldb::cli {

void add_tpcc_command(CLI::App& group, Invocation& invocation);
void add_ycsb_command(CLI::App& group, Invocation& invocation);
void add_log_bench_command(CLI::App& group, Invocation& invocation);
void add_gleaner_bench_command(CLI::App& group, Invocation& invocation);

struct BenchReport {
  std::string text;
  nlohmann::json json;
  ExitCode code;
};

/// One benchmark, with checked options.
struct Benchmark {
  std::string command;       // "bench tpcc": what errors begin with
  std::string cluster_name;  // of a cluster of its own
  bench::CommonOptions options;
  std::string what_to_lower;  // when the cluster does not fit: "--warehouses or --seconds"
  std::string violated;       // what is wrong when the verification fails
  std::function<Result<bench::Estimate>(uint32_t nodes, uint32_t workers, uint32_t cores)> estimate;
  std::function<Result<BenchReport>(bench::ClusterPort& port, const bench::Console& console)> run;
  /// May be empty. Before `run`, on a cluster of its own that then ends: `run` gets another one,
  /// which has its data.
  std::function<Result<void>(bench::ClusterPort& port, const bench::Console& console)> prepare = {};
  /// May be empty. After the end of a cluster of its own whose run was well: its data is there
  /// still.
  std::function<Result<void>(const Config& config)> after_stop = {};
};

/// The options that every benchmark has.
void add_common_options(CLI::App& command, bench::CommonOptions& options,
                        const std::string& verify_help);

/// On the running cluster, else on one that it starts and stops.
Result<void> run_benchmark(const ClusterChoice& choice, const Benchmark& benchmark);
Result<void> run_on_own_cluster(const ClusterChoice& choice, const Benchmark& benchmark);

/// What does not replace an earlier line, and what does on a terminal.
bench::Console make_console();
/// Before the run rather than after it. Empty: none is wanted.
Result<void> check_json_file(const std::string& path);
Result<void> write_json_file(const std::string& path, const nlohmann::json& json);

}  // namespace atolldb::cli
