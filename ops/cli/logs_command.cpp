// `atoll logs`: shows and follows the text logs of the processes of a live or dead cluster.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "shared/base/try.h"
#include "shared/message/control_message.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {
namespace {

struct LogsOptions {
  std::string role;
  bool follow = false;
  uint32_t lines = 50;
  bool json = false;
};

struct LogFile {
  std::string role;
  std::string path;
  std::ifstream::off_type shown = 0;
};

Result<std::vector<LogFile>> chosen_files(const Config& config, const std::string& role) {
  std::vector<std::string> roles = {"launcher", "coordinator"};
  for (size_t i = 0; i < config.nodes.size(); ++i) roles.push_back("node" + std::to_string(i));
  std::vector<LogFile> files;
  std::string known;
  for (const std::string& name : roles) {
    known += (known.empty() ? "" : ", ") + name;
    const bool is_chosen = role.empty() || role == name || "node" + role == name;
    if (is_chosen) files.push_back({name, log_path(config, name)});
  }
  if (files.empty()) {
    return make_error(ExitCode::usage, "logs " + role + ": no such process in cluster \"" +
                                           config.cluster.name + "\": choose one of " + known);
  }
  return files;
}

/// Returns the next word of the line, and removes it with the blank after it.
std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

/// Returns a line as a JSON object. A line of another form than the loggers' has no time and no
/// level, for example one that a library printed.
Json line_json(const std::string& role, std::string_view line) {
  constexpr std::array<std::string_view, 6> kLevels = {"trace",   "debug", "info",
                                                       "warning", "error", "critical"};
  std::string_view rest = line;
  const std::string_view time = take_word(rest);
  const std::string_view level = take_word(rest);
  Json json = {{"schema_version", 1}, {"process", role}};
  if (std::ranges::find(kLevels, level) != kLevels.end() && take_word(rest) == role) {
    json["time"] = time;
    json["level"] = level;
    json["message"] = rest;
  } else {
    json["message"] = line;
  }
  return json;
}

void print_log_line(const LogFile& file, const std::string& line, bool json) {
  const std::string text =
      json ? line_json(file.role, line).dump(-1, ' ', false, Json::error_handler_t::replace)
           : printable(line);
  std::printf("%s\n", text.c_str());
}

/// Prints the last lines of the file. `print_news` prints the lines after them.
bool print_tail(LogFile& file, const LogsOptions& options, bool with_heading) {
  std::ifstream stream(file.path);
  if (!stream) return false;
  std::deque<std::string> last;
  for (std::string line; std::getline(stream, line);) {
    last.push_back(std::move(line));
    if (last.size() > options.lines) last.pop_front();
  }
  if (with_heading && !options.json) std::printf("==> %s <==\n", file.path.c_str());
  for (const std::string& line : last) print_log_line(file, line, options.json);
  std::error_code error;
  file.shown = static_cast<std::ifstream::off_type>(std::filesystem::file_size(file.path, error));
  return true;
}

/// Prints the new lines of the file, without a heading, because each line names its process.
void print_news(LogFile& file, bool json) {
  std::ifstream stream(file.path);
  if (!stream || !stream.seekg(file.shown)) return;
  for (std::string line; std::getline(stream, line);) {
    if (stream.eof()) return;  // the line is not complete yet
    print_log_line(file, line, json);
    file.shown = stream.tellg();
  }
}

Result<void> logs(const ClusterChoice& choice, const LogsOptions& options) {
  ATOLL_ASSIGN(const Config config, find_config(choice));
  ATOLL_ASSIGN(std::vector<LogFile> files, chosen_files(config, options.role));
  bool found = false;
  for (LogFile& file : files) found |= print_tail(file, options, files.size() > 1);
  if (!found) {
    return make_error(ExitCode::not_running,
                      "cluster \"" + config.cluster.name + "\": has no logs in " +
                          config.cluster.log_dir +
                          ": start it, or choose another with --cluster or -c");
  }
  constexpr std::chrono::milliseconds kPause{200};
  while (options.follow) {
    std::fflush(stdout);
    std::this_thread::sleep_for(kPause);
    for (LogFile& file : files) print_news(file, options.json);
  }
  return {};
}

}  // namespace

void add_logs_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<LogsOptions>();
  CLI::App* command = add_cluster_command(app, invocation, "logs",
                                          "Show the logs of a cluster's processes", options, logs);
  command
      ->add_option("node", options->role,
                   "node0 (or 0), coordinator or launcher; without it, all of them")
      ->type_name("NODE");
  command->add_flag("-f,--follow", options->follow, "Also print new lines, until interrupted");
  command->add_option("-n,--lines", options->lines, "Number of last lines of each log to print")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1'000'000u));
  command->add_flag("--json", options->json, "Print a JSON object per line, for programs");
}

}  // namespace atolldb::cli
