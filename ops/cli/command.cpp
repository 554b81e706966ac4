#include "ops/cli/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ops/cli/completion.h"
#include "ops/cli/exit_codes.h"
#include "ops/cli/usage_text.h"

namespace atolldb::cli {
namespace {

/// Returns "Exit codes: 0 success, 1 failed, ...", in two lines.
std::string footer() {
  std::string text = "Exit codes:";
  for (const auto& [code, words] : kExitCodes) {
    if (code != ExitCode::success) text += ",";
    text += code == ExitCode::coordinator_unreachable ? "\n" : " ";
    text += std::to_string(static_cast<int>(code)) + " " + std::string(words);
  }
  return text;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    return app.exit(error);  // --help or --version was given
  }
  print_error({ExitCode::usage, usage_text(app, error)});
  return static_cast<int>(ExitCode::usage);
}

/// Opens /dev/null for each standard stream that is closed. If the stream stayed closed, a later
/// file, such as a lock or the channel to the launcher, would get its number. The launcher's log
/// would then replace that file.
void open_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd >= 0) close(fd);
}

}  // namespace

void add_cluster_options(CLI::App& command, Invocation& invocation) {
  command.add_option("--cluster", invocation.choice.name, "Name of the cluster")->type_name("NAME");
  command.add_option("-c,--config", invocation.choice.config_file, "Config file of the cluster")
      ->type_name("FILE");
}

void add_set_option(CLI::App& command, std::vector<std::string>& settings) {
  command
      .add_option(
          "--set", settings,
          "Replace a value of the config, for example memory.volatile_pool=1GiB; repeatable")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

void add_json_option(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON, for programs");
}

void print_error(const Error& error) {
  if (!error.message.empty()) std::fprintf(stderr, "atoll: %s\n", error.message.c_str());
}

int run_command_line(int argc, char** argv) {
  open_standard_streams();
  CLI::App app("Atoll: an OLTP engine on shared memory", "atoll");
  app.require_subcommand(1);
  app.footer(footer());
  app.set_version_flag("--version", version_text, "Print versions, as `atoll version`");
  Invocation invocation;
  for (const auto add :
       {add_up_command,     add_status_command,  add_top_command,       add_down_command,
        add_logs_command,   add_wal_command,     add_snapshot_command,  add_checkpoint_command,
        add_backup_command, add_restore_command, add_export_command,    add_import_command,
        add_data_command,   add_storage_command, add_procedure_command, add_session_command,
        add_keys_command,   add_kv_command,      add_shell_command,     add_bench_command,
        add_demo_command,   add_config_command,  add_doctor_command,    add_version_command}) {
    add(app, invocation);
  }
  if (argc > 1 && argv[1] == kCompletionCommand) {
    print_completions(app, std::vector<std::string>(argv + 2, argv + argc));
    return static_cast<int>(ExitCode::success);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  Result<void> done = invocation.run();
  const bool is_printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (done && !is_printed) {
    done = make_error(ExitCode::failed, "standard output: not all of it could be written: " +
                                            std::string(std::strerror(errno)));
  }
  if (done) return static_cast<int>(ExitCode::success);
  print_error(done.error());
  return static_cast<int>(done.error().code);
}

}  // namespace atolldb::cli
