// Shared parts of the commands of `atoll`. Each command is one file. It adds its options to the
// parser, and sets `Invocation::run` if it is the chosen one.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/cli/cluster_finder.h"
#include "shared/base/error.h"

namespace atolldb::cli {

/// The command that the command line chose.
struct Invocation {
  ClusterChoice choice;
  std::function<Result<void>()> run;
};

/// Adds `--cluster NAME` and `-c FILE`, by which a command finds its cluster.
void add_cluster_options(CLI::App& command, Invocation& invocation);
/// Adds `--set KEY=VALUE`, for commands that start a cluster.
void add_set_option(CLI::App& command, std::vector<std::string>& settings);
/// Adds `--json`.
void add_json_option(CLI::App& command, bool& json);

/// Adds a command that finds its cluster by `--cluster` or `-c`, and runs `run(choice, *options)`.
template <typename Options, typename Run>
CLI::App* add_cluster_command(CLI::App& parent, Invocation& invocation, const char* name,
                              const char* help, const std::shared_ptr<Options>& options, Run run) {
  CLI::App* command = parent.add_subcommand(name, help);
  add_cluster_options(*command, invocation);
  command->callback([&invocation, options, run] {
    invocation.run = [&invocation, options, run] { return run(invocation.choice, *options); };
  });
  return command;
}

void add_up_command(CLI::App& app, Invocation& invocation);
void add_status_command(CLI::App& app, Invocation& invocation);
void add_top_command(CLI::App& app, Invocation& invocation);
void add_down_command(CLI::App& app, Invocation& invocation);
void add_logs_command(CLI::App& app, Invocation& invocation);
void add_wal_command(CLI::App& app, Invocation& invocation);
void add_data_command(CLI::App& app, Invocation& invocation);
void add_backup_command(CLI::App& app, Invocation& invocation);
void add_restore_command(CLI::App& app, Invocation& invocation);
void add_export_command(CLI::App& app, Invocation& invocation);
void add_import_command(CLI::App& app, Invocation& invocation);
void add_snapshot_command(CLI::App& app, Invocation& invocation);
void add_checkpoint_command(CLI::App& app, Invocation& invocation);
void add_storage_command(CLI::App& app, Invocation& invocation);
void add_procedure_command(CLI::App& app, Invocation& invocation);
void add_session_command(CLI::App& app, Invocation& invocation);
void add_keys_command(CLI::App& app, Invocation& invocation);
void add_kv_command(CLI::App& app, Invocation& invocation);
void add_shell_command(CLI::App& app, Invocation& invocation);
void add_bench_command(CLI::App& app, Invocation& invocation);
void add_demo_command(CLI::App& app, Invocation& invocation);
void add_config_command(CLI::App& app, Invocation& invocation);
void add_doctor_command(CLI::App& app, Invocation& invocation);
void add_version_command(CLI::App& app, Invocation& invocation);

/// Returns the lines of `atoll version` and `atoll --version`.
std::string version_text();

/// Parses the command line, runs the command and prints its error. Returns the exit code.
int run_command_line(int argc, char** argv);

/// Prints "atoll: what: why: what to do" on standard error. Prints nothing for an empty message,
/// because its text has already been printed.
void print_error(const Error& error);

}  // namespace atolldb::cli
