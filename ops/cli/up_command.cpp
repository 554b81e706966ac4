// `atoll up`: starts a cluster.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/background.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {
namespace {

struct UpOptions {
  bool foreground = false;
  bool discards_data = false;
  bool until_readable = false;
};

void print_line(const std::string& name, const std::string& value) {
  std::printf("  %-14s %s\n", name.c_str(), value.c_str());
}

void print_running(const Config& config) {
  uint32_t workers = 0;
  for (const NodeConfig& node : config.nodes) workers += node.workers;
  std::printf("cluster \"%s\" %s: %zu nodes, %u workers\n", config.cluster.name.c_str(),
              paint(Colour::green, "runs").c_str(), config.nodes.size(), workers);
  if (config.durability.mode == DurabilityMode::off) {
    print_line("durability off", paint(Colour::yellow, "in memory only: down loses the data"));
  } else {
    const bool is_kept = config.durability.mode == DurabilityMode::durable;
    const std::string text = durability_text(config);
    print_line("durability", is_kept ? text : paint(Colour::yellow, text));
  }
  const size_t numa_nodes = Machine::detect().numa_nodes.size();
  if (numa_nodes < config.nodes.size()) {
    print_line("NUMA", "the machine has " + std::to_string(numa_nodes) +
                           " NUMA node(s): the cluster's nodes share them");
  }
  print_line("control", config.control.endpoint);
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    print_line("node" + std::to_string(node), node_endpoint(config, node));
  }
  std::ifstream file(endpoints_path(config));
  const auto endpoints = nlohmann::json::parse(file, nullptr, false);
  if (endpoints.is_object() && endpoints.contains("metrics")) {
    for (const auto& [role, endpoint] : endpoints["metrics"].items()) {
      print_line("metrics", "http://" + endpoint.get<std::string>() + "/metrics (" + role + ")");
    }
  }
  if (config.metrics.enabled) print_line("prometheus", prometheus_targets_path(config));
  print_line("logs", config.cluster.log_dir);
  std::fflush(stdout);
}

void print_recovering(const Config& config, const std::string& readable) {
  std::printf("cluster \"%s\" %s: %s\n", config.cluster.name.c_str(),
              paint(Colour::yellow, "recovers").c_str(),
              readable.empty()
                  ? "there is no snapshot that could be read meanwhile"
                  : ("snapshot_read_only transactions run already, on " + readable).c_str());
  std::fflush(stdout);
}

Result<void> up(const ClusterChoice& choice, const UpOptions& options) {
  const Result<Config> config = config_of_new_cluster(choice);
  if (!config) return std::unexpected(config.error());
  LaunchOptions launch;
  launch.discards_data = options.discards_data;
  launch.until_readable = options.until_readable;
  bool is_readable = false;
  launch.on_recovering = [&](const std::string& readable) {
    is_readable = !readable.empty();
    print_recovering(*config, readable);
  };
  if (options.foreground) {
    return run_foreground(*config, [&] { print_running(*config); }, launch);
  }
  const Result<void> started = start_background(*config, launch);
  if (!started) return started;
  if (options.until_readable && is_readable) {
    print_line("wait for it", "atoll status --watch");
    return started;
  }
  print_running(*config);
  return started;
}

}  // namespace

void add_up_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("up", "Start a cluster and print its endpoints");
  add_cluster_options(*command, invocation);
  const auto options = std::make_shared<UpOptions>();
  command->add_flag(
      "--foreground", options->foreground,
      "Stay with the cluster: the first SIGINT or SIGTERM stops it in order, the second at once");
  command->add_flag("--discard-data", options->discards_data,
                    "Start empty: move what cluster.data_dir and the nodes' directories hold into "
                    "discarded-<n> beside it");
  command->add_flag("--until-readable", options->until_readable,
                    "Return when snapshots can be read, which is before the end of a recovery");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] { return up(invocation.choice, *options); };
  });
}

}  // namespace atolldb::cli
