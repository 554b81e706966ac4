#include "ops/cli/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "ops/cli/exit_codes.h"
#include "shared/config/config_values.h"

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

/// Words from other programs, and the commands that they mean here.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"start", "up"},    {"stop", "down"},   {"list", "ls"}, {"show", "describe"},
    {"delete", "drop"}, {"remove", "drop"}, {"rm", "drop"}};

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(below->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string nearest_option(const std::string& word, const CLI::App& command) {
  const std::vector<std::string> names = option_names(command);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return std::string(nearest_word(word, candidates));
}

std::string nearest_command(const std::string& word, const CLI::App& command) {
  const std::vector<std::string> names = command_names(command);
  for (const auto& [synonym, name] : kSynonyms) {
    if (word == synonym && std::ranges::find(names, name) != names.end()) return std::string(name);
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  // Up to half of the letters may differ. There are so few commands that such a word is close to
  // only one of them.
  return std::string(nearest_word(word, candidates, (word.size() + 1) / 2));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// A command on the command line, and its name as the user wrote it.
struct Reached {
  const CLI::App* command;
  std::string path;  // "atoll storage"

  std::string help() const { return "see `" + path + " --help`"; }
  /// Returns the name of the command, for example "storage", and `separator`. Returns an empty text
  /// for `atoll` itself.
  std::string prefix(const char* separator) const {
    const size_t space = path.find(' ');
    return space == std::string::npos ? "" : path.substr(space + 1) + separator;
  }
};

/// Returns the commands from `atoll` to the innermost one.
std::vector<Reached> reached_commands(const CLI::App& app) {
  std::vector<Reached> reached = {{&app, app.get_name()}};
  while (!reached.back().command->get_subcommands().empty()) {
    const CLI::App* below = reached.back().command->get_subcommands().front();
    reached.push_back({below, reached.back().path + " " + below->get_name()});
  }
  return reached;
}

std::string unknown_option(const Reached& at, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  const std::string near = nearest_option(option, *at.command);
  std::string what_to_do;
  if (!near.empty()) {
    what_to_do = "did you mean \"" + near + "\"? ";
  } else if (!command_names(*at.command).empty()) {
    what_to_do = "options must follow the command: ";
  }
  return "\"" + option + "\": no such option of `" + at.path + "`: " + what_to_do + at.help();
}

std::string unknown_word(const Reached& at, const std::string& word) {
  const std::vector<std::string> names = command_names(*at.command);
  if (names.empty()) return "\"" + word + "\": one argument too many: " + at.help();
  const std::string near = nearest_command(word, *at.command);
  const std::string what_to_do = near.empty() ? "choose one of " + joined(names) + ": "
                                              : "did you mean \"" + at.prefix(" ") + near + "\"? ";
  return "\"" + at.prefix(" ") + word + "\": no such command: " + what_to_do + at.help();
}

std::string usage_text(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<Reached> reached = reached_commands(app);
  for (const Reached& at : reached) {
    // Reports the unknown word or option instead of the parser's error. After a misspelt option,
    // the parser reports only that the correct option is missing.
    std::vector<std::string> rest = at.command->remaining();
    std::erase(rest, "--");
    if (rest.empty()) continue;
    return (rest.front().starts_with('-') ? unknown_option : unknown_word)(at, rest.front());
  }
  const Reached& last = reached.back();
  const std::vector<std::string> names = command_names(*last.command);
  if (names.empty()) return std::string(error.what()) + ": " + last.help();
  return last.prefix(": ") + "no command given: choose one of " + joined(names) + ": " +
         last.help();
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
       {add_up_command, add_status_command, add_down_command, add_logs_command, add_log_command,
        add_snapshot_command, add_backup_command, add_restore_command, add_export_command,
        add_import_command, add_data_command, add_storage_command, add_procedure_command,
        add_bench_command, add_config_command, add_doctor_command, add_version_command}) {
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
