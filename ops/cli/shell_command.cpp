// `atoll shell`: statements on records from a terminal or a script.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "ops/cli/command.h"
#include "ops/cli/shell_interpreter.h"
#include "ops/shell/line_editor.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

struct ShellOptions {
  KvOptions records;
  std::vector<std::string> lines;  // --execute
  bool keeps_going = false;
};

/// Returns the file with the lines of earlier shells, or an empty path if there is no place for it.
std::string history_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (state != nullptr && *state != '\0') {
    folder = state;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.local/state";
  } else {
    return "";
  }
  // Errors of mkdir are ignored: without the folder the editor keeps no history.
  for (size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    [[maybe_unused]] const int made = mkdir(folder.substr(0, slash).c_str(), 0700);
    if (slash == std::string::npos) break;
  }
  folder += "/atoll";
  [[maybe_unused]] const int made = mkdir(folder.c_str(), 0700);
  return folder + "/shell_history";
}

Result<void> run_interactively(shell::Connection& connection, ShellInterpreter& interpreter) {
  std::printf("%s. `help` lists the statements, `quit` or Ctrl-D ends the shell.\n",
              connection.name().c_str());
  std::fflush(stdout);
  shell::LineEditor editor(history_path(),
                           [&](std::string_view line) { return interpreter.complete(line); });
  connection.interrupt_by(shell::LineEditor::take_interrupt);
  std::string line;
  while (!interpreter.has_quit()) {
    const std::string prompt = interpreter.is_in_transaction() ? "atoll*> " : "atoll> ";
    const auto read = editor.read(prompt, line);
    if (read == shell::LineEditor::Read::interrupted) {
      std::printf("\n");
      continue;
    }
    if (read == shell::LineEditor::Read::end) {
      std::printf("\n");
      break;
    }
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    editor.remember(line);
    const auto done = interpreter.run(line);
    if (!done) std::fprintf(stderr, "error: %s\n", done.error().message.c_str());
  }
  connection.interrupt_by({});
  if (interpreter.is_in_transaction()) {
    std::fprintf(stderr, "the open transaction is aborted: nothing was committed\n");
  }
  return {};
}

/// Runs the lines until one fails, or all of them with --keep-going. Returns the first error.
class Script {
 public:
  Script(ShellInterpreter& interpreter, bool keeps_going)
      : interpreter_(interpreter), keeps_going_(keeps_going) {}

  /// Returns false after the last line to run.
  bool run(const std::string& line) {
    ++number_;
    const auto done = interpreter_.run(line);
    if (done) return !interpreter_.has_quit();
    Error error{done.error().code, "line " + std::to_string(number_) + ": " + done.error().message};
    if (keeps_going_) {
      std::fflush(stdout);
      print_error(error);
      error.message.clear();
    }
    if (first_.code == ExitCode::success) first_ = std::move(error);
    return keeps_going_ && !interpreter_.has_quit();
  }

  Result<void> end() {
    if (first_.code != ExitCode::success) return std::unexpected(first_);
    if (!interpreter_.is_in_transaction()) return {};
    return make_error(ExitCode::failed,
                      "the script ends within a transaction, which is aborted: end it with commit");
  }

 private:
  ShellInterpreter& interpreter_;
  const bool keeps_going_;
  uint64_t number_ = 0;
  Error first_{ExitCode::success, ""};
};

Result<void> run_shell(const ClusterChoice& choice, const ShellOptions& options) {
  ATOLL_TRY(formats_of(options.records));
  ATOLL_TRY(run_options_of(options.records));
  ATOLL_ASSIGN(const auto connection, connect_to_records(choice, options.records));
  ShellInterpreter interpreter(*connection, options.records);
  if (options.lines.empty() && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    return run_interactively(*connection, interpreter);
  }
  Script script(interpreter, options.keeps_going);
  if (!options.lines.empty()) {
    for (const std::string& line : options.lines) {
      if (!script.run(line)) break;
    }
    return script.end();
  }
  for (std::string line; std::getline(std::cin, line);) {
    if (!script.run(line)) break;
  }
  return script.end();
}

}  // namespace

void add_shell_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ShellOptions>();
  CLI::App* command = add_cluster_command(app, invocation, "shell",
                                          "Read and write records interactively or by a script",
                                          options, run_shell);
  add_kv_options(*command, options->records);
  command
      ->add_option("-e,--execute", options->lines,
                   "Run this line and end; may be given several times")
      ->allow_extra_args(false)
      ->type_name("LINE");
  command->add_flag("--keep-going", options->keeps_going,
                    "In a script, continue after a line that fails");
}

}  // namespace atolldb::cli
