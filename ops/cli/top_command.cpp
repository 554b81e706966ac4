// `atoll top`: shows what a cluster does, each second.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <thread>

#include "ops/cli/command.h"
#include "ops/top/screen.h"
#include "ops/top/view.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

struct TopOptions {
  bool once = false;
  bool json = false;
  uint32_t batch = 0;  // number of reports; 0: not given
  double interval_s = 1;
};

constexpr double kMinIntervalS = 0.1;
constexpr double kMaxIntervalS = 3'600;

/// Prints the figures as text, without a limit of width, or as one line of JSON.
void print_figures(const top::Figures& figures, bool as_json, bool is_first) {
  if (as_json) {
    std::printf(
        "%s\n",
        top::figures_json(figures).dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    if (!is_first) std::printf("\n");
    for (const top::Line& line : top::render(figures, top::View(), {}, "")) {
      std::printf("%s\n", line.text.c_str());
    }
  }
  std::fflush(stdout);
}

/// Prints `count` reports; 0: until it is interrupted or the cluster ends.
Result<void> print_reports(top::Sampler& sampler, const TopOptions& options, uint32_t count) {
  const auto interval = std::chrono::milliseconds(std::llround(options.interval_s * 1'000));
  ATOLL_ASSIGN(top::Sample before, sampler.take());
  for (uint32_t number = 0; count == 0 || number < count; ++number) {
    std::this_thread::sleep_for(interval);
    ATOLL_ASSIGN(top::Sample after, sampler.take());
    print_figures(top::figures_between(before, after), options.json, number == 0);
    before = std::move(after);
  }
  return {};
}

Result<void> top_of_cluster(const ClusterChoice& choice, const TopOptions& options) {
  if (!(options.interval_s >= kMinIntervalS && options.interval_s <= kMaxIntervalS)) {
    return make_error(ExitCode::usage, "top: --interval: " + std::to_string(options.interval_s) +
                                           " is out of range: use 0.1 to 3600 seconds");
  }
  ATOLL_ASSIGN(const Config config, find_reachable(choice));
  top::Sampler sampler(choice, config);
  if (options.once || options.batch != 0 || options.json) {
    return print_reports(sampler, options, options.once ? 1 : options.batch);
  }
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
    return make_error(ExitCode::usage,
                      "top: standard input or output is no terminal: use --once, --batch N or "
                      "--json");
  }
  return top::run_screen(sampler,
                         std::chrono::milliseconds(std::llround(options.interval_s * 1'000)));
}

}  // namespace

void add_top_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* command = add_cluster_command(
      app, invocation, "top", "Show what a cluster does, each second; press h for the keys",
      options, top_of_cluster);
  CLI::Option* once =
      command->add_flag("--once", options->once, "Print one report and end; as --batch 1");
  command->add_option("--batch", options->batch, "Print this many reports and end")
      ->check(CLI::PositiveNumber)
      ->excludes(once);
  command->add_flag("--json", options->json,
                    "Print a line of JSON for each report, for programs; without --once and "
                    "--batch until interrupted");
  command->add_option("--interval", options->interval_s, "Seconds between samples: 0.1 to 3600")
      ->type_name("SECONDS")
      ->capture_default_str();
}

}  // namespace atolldb::cli
