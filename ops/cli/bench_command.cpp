// `atoll bench`: the command group of the benchmarks.
#include <CLI/CLI.hpp>

#include "ops/cli/bench_run.h"
#include "ops/cli/command.h"

namespace atolldb::cli {

void add_bench_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("bench", "Run a benchmark");
  group->require_subcommand(1);
  add_tpcc_command(*group, invocation);
  add_ycsb_command(*group, invocation);
  add_log_bench_command(*group, invocation);
  add_gleaner_bench_command(*group, invocation);
}

}  // namespace atolldb::cli
