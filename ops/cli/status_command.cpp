// `atoll status`: shows the state of a cluster, once or every second.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "ops/cli/command.h"
#include "ops/cli/status_report.h"
#include "ops/cli/status_source.h"
#include "ops/cli/terminal.h"

namespace atolldb::cli {
namespace {

struct StatusOptions {
  bool json = false;
  bool watch = false;
};

constexpr std::chrono::milliseconds kTimeout{5'000};
/// The throughput covers the time since the previous status request of any client. So the command
/// sends two requests at this interval.
constexpr std::chrono::milliseconds kInterval{250};
constexpr std::chrono::milliseconds kWatchInterval{1'000};

void show(const Json& status, const StatusOptions& options) {
  if (options.json) {
    std::printf("%s\n", status_json(status).dump(options.watch ? -1 : 2).c_str());
  } else {
    if (options.watch && is_terminal()) std::printf("\033[H\033[2J");
    std::printf("%s", status_text(status).c_str());
  }
  std::fflush(stdout);
}

/// Prints the status of a cluster that restarts. So programs get a JSON object in this case, too.
void show_restarting(const Config& config) {
  const Json restarts = restarts_of(config);
  if (!is_restarting(restarts)) return;
  const Json status = {{"schema_version", 1},
                       {"name", config.cluster.name},
                       {"state", "restarting"},
                       {"healthy", false},
                       {"restarts", restarts}};
  std::printf("%s\n", status.dump(2).c_str());
}

void show_not_running(const ClusterChoice& choice) {
  Json status = {{"schema_version", 1}, {"state", "not_running"}, {"healthy", false}};
  if (const Result<Config> config = find_config(choice); config) {
    status["name"] = config->cluster.name;
    const std::string failure = last_failure(*config);
    status["last_failure"] = failure.empty() ? Json() : Json(failure);
    status["last_failure_details"] = last_failure_note(*config);
  }
  std::printf("%s\n", status.dump(2).c_str());
}

Result<void> status(const ClusterChoice& choice, const StatusOptions& options) {
  const Result<Config> config = find_reachable(choice);
  if (!config) {
    const bool is_down = config.error().code == ExitCode::not_running;
    if (is_down && options.json) show_not_running(choice);
    return std::unexpected(config.error());
  }
  Result<Json> answer = ask_status(*config, {}, kTimeout);
  if (!answer) {
    if (options.json) show_restarting(*config);
    return std::unexpected(answer.error());
  }
  std::this_thread::sleep_for(kInterval);
  do {
    answer = ask_status(*config, {}, kTimeout);
    if (!answer) {
      // If the cluster has ended meanwhile, reports how it ended instead.
      const Result<Config> again = find_reachable({config->cluster.name, choice.config_file});
      return std::unexpected(again ? answer.error() : again.error());
    }
    show(*answer, options);
    if (options.watch) std::this_thread::sleep_for(kWatchInterval);
  } while (options.watch);
  return {};
}

}  // namespace

void add_status_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<StatusOptions>();
  CLI::App* command =
      add_cluster_command(app, invocation, "status",
                          "Show whether a cluster is healthy, and what it does", options, status);
  command->add_flag("--json", options->json,
                    "Print JSON, for programs; with --watch, one line each time");
  command->add_flag("--watch", options->watch, "Repeat every second, until interrupted");
}

}  // namespace atolldb::cli
