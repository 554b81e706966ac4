#include "ops/cli/usage_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/config/config_values.h"

namespace atolldb::cli {
namespace {

/// Words from other programs, and the commands that they mean here.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"start", "up"},    {"stop", "down"},   {"list", "ls"}, {"show", "describe"},
    {"delete", "drop"}, {"remove", "drop"}, {"rm", "drop"}, {"delete", "del"},
    {"remove", "del"},  {"rm", "del"},      {"set", "put"}, {"rollback", "abort"},
    {"log", "wal"}};

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(below->get_name());
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
  std::string path;  // "atoll storage"; in the shell "" or "get"

  std::string help() const { return path.empty() ? "see `help`" : "see `" + path + " --help`"; }
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
    const std::string& path = reached.back().path;
    reached.push_back({below, (path.empty() ? "" : path + " ") + below->get_name()});
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

}  // namespace

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
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
  // A command like `bench tpcc` also runs without one of its subcommands.
  const bool needs_command = !names.empty() && last.command->get_require_subcommand_min() > 0;
  if (!needs_command) return std::string(error.what()) + ": " + last.help();
  return last.prefix(": ") + "no command given: choose one of " + joined(names) + ": " +
         last.help();
}

}  // namespace atolldb::cli
