#include "ops/cli/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace atolldb::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 success, 1 failed, 2 usage, 3 not running, 4 already running,\n"
    "5 coordinator unreachable, 6 resources, 7 corruption, 8 durability, 10 disk full, 78 config";

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    return app.exit(error);  // --help
  }
  // The innermost command that the line reached knows the usage to show.
  const CLI::App* command = &app;
  std::string name = "atoll";
  for (auto chosen = command->get_subcommands(); !chosen.empty();
       chosen = command->get_subcommands()) {
    command = chosen.front();
    name += " " + command->get_name();
  }
  print_error({ExitCode::usage, std::string(error.what()) + ": see `" + name + " --help`"});
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

void add_cluster_options(CLI::App& command, Invocation& invocation) {
  command.add_option("--cluster", invocation.choice.name, "Name of the cluster")->type_name("NAME");
  command.add_option("-c,--config", invocation.choice.config_file, "Config file of the cluster")
      ->type_name("FILE");
}

void print_error(const Error& error) {
  if (!error.message.empty()) std::fprintf(stderr, "atoll: %s\n", error.message.c_str());
}

int run_command_line(int argc, char** argv) {
  CLI::App app("Atoll: an OLTP engine on shared memory", "atoll");
  app.require_subcommand(1);
  app.footer(kFooter);
  Invocation invocation;
  for (const auto add : {add_up_command, add_status_command, add_down_command, add_logs_command,
                         add_storage_command, add_procedure_command, add_bench_command,
                         add_config_command, add_doctor_command, add_version_command}) {
    add(app, invocation);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  const Result<void> done = invocation.run();
  if (done) return static_cast<int>(ExitCode::success);
  std::fflush(stdout);
  print_error(done.error());
  return static_cast<int>(done.error().code);
}

}  // namespace atolldb::cli
