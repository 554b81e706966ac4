// `atoll up`: starts a cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/cli/command.h"
#include "ops/cli/salvage_report.h"
#include "ops/cli/status_report.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/background.h"
#include "shared/base/try.h"
#include "shared/message/control_client.h"
#include "shared/metrics/exposer.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {
namespace {

struct UpOptions {
  bool foreground = false;
  bool discards_data = false;
  bool salvages = false;
  bool until_readable = false;
  bool json = false;
};

void print_line(const std::string& name, const std::string& value) {
  std::printf("  %-14s %s\n", name.c_str(), value.c_str());
}

/// Returns the endpoints that the processes have written, or an empty object.
Json endpoints_of(const Config& config) {
  std::ifstream file(endpoints_path(config));
  Json endpoints = Json::parse(file, nullptr, false);
  return endpoints.is_object() ? endpoints : Json::object();
}

/// Returns a warning for each process whose metrics do not have their port. `endpoints`: by role.
std::vector<std::string> port_warnings(const Config& config, const Json& endpoints) {
  std::vector<std::string> warnings;
  if (config.metrics.base_port == 0) return warnings;
  for (uint32_t offset = 0; offset <= config.nodes.size(); ++offset) {
    const std::string role = offset == 0 ? "coordinator" : "node" + std::to_string(offset - 1);
    const std::string wanted = MetricsExposer::endpoint_text(
        config.metrics.listen, metrics_port(config.metrics.base_port, offset));
    const std::string endpoint = endpoints.value(role, wanted);
    if (endpoint == wanted) continue;
    warnings.push_back(wanted + " is in use: the metrics of " + role + " are on " + endpoint +
                       "; set metrics.base_port to free ports");
  }
  return warnings;
}

/// Prints the endpoints, and a warning for each process that does not have its port.
void print_metrics(const Config& config, const Json& endpoints) {
  for (const auto& [role, endpoint] : endpoints.items()) {
    print_line("metrics", "http://" + endpoint.get<std::string>() + "/metrics (" + role + ")");
  }
  for (const std::string& warning : port_warnings(config, endpoints)) {
    print_line("warning", paint(Colour::yellow, warning));
  }
}

/// Returns what print_running prints, for programs.
Json running_json(const Config& config) {
  uint32_t workers = 0;
  Json nodes = Json::array();
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    workers += config.nodes[node].workers;
    nodes.push_back({{"node", node}, {"control", node_endpoint(config, node)}});
  }
  Json json = {{"schema_version", 1},
               {"cluster", config.cluster.name},
               {"state", "running"},
               {"nodes", std::move(nodes)},
               {"workers", workers},
               {"durability", durability_text(config)},
               {"control", config.control.endpoint},
               {"run_dir", config.cluster.run_dir},
               {"log_dir", config.cluster.log_dir},
               {"metrics", Json::object()},
               {"warnings", Json::array()},
               {"problems", Json::array()}};
  if (config.durability.mode == DurabilityMode::durable) {
    json["data_dir"] = config.cluster.data_dir;
  }
  if (config.metrics.enabled) json["prometheus_targets"] = prometheus_targets_path(config);
  const Json endpoints = endpoints_of(config);
  for (const char* member : {"status_page", "network", "metrics"}) {
    if (endpoints.contains(member)) json[member] = endpoints[member];
  }
  if (endpoints.contains("metrics")) {
    for (std::string& warning : port_warnings(config, endpoints["metrics"])) {
      json["warnings"].push_back(std::move(warning));
    }
  }
  for (const UnusedSetting& setting : unused_settings(config)) {
    json["warnings"].push_back(to_string(setting));
  }
  return json;
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
  const Json endpoints = endpoints_of(config);
  if (endpoints.contains("status_page")) {
    print_line("status page", endpoints["status_page"].get<std::string>());
  }
  if (endpoints.contains("network")) {
    for (const auto& [role, port] : endpoints["network"].items()) {
      const std::string key = port.value("key", "");
      print_line("network", port.value("endpoint", "") + " (" + role + ", " +
                                (key.empty() ? "without keys" : "key " + key) + ")");
    }
  }
  if (endpoints.contains("metrics")) {
    print_metrics(config, endpoints["metrics"]);
  }
  if (config.metrics.enabled) print_line("prometheus", prometheus_targets_path(config));
  print_line("logs", config.cluster.log_dir);
  if (config.durability.mode == DurabilityMode::durable) {
    print_line("data", config.cluster.data_dir);
  }
  for (const UnusedSetting& setting : unused_settings(config)) {
    print_line("warning", paint(Colour::yellow, printable(to_string(setting))));
  }
  std::fflush(stdout);
}

/// Shows the progress of a start-up. A terminal shows one line that is replaced; other output gets
/// a line every few seconds.
class ProgressPrinter {
 public:
  void show(const StartReport& report) {
    const auto now = std::chrono::steady_clock::now();
    if (is_terminal()) {
      std::printf("\r\033[K%s: %s", report.state.c_str(), progress_text(report).c_str());
      is_line_open_ = true;
    } else if (now - shown_at_ >= kLinePause) {
      std::printf("%s: %s\n", report.state.c_str(), progress_text(report).c_str());
      shown_at_ = now;
    }
    std::fflush(stdout);
  }
  /// Removes the progress line. Called before any other output.
  void end() {
    if (is_line_open_) std::printf("\r\033[K");
    std::fflush(stdout);
    is_line_open_ = false;
  }

 private:
  /// Pause between two lines. Most start-ups take less time, and print no progress line.
  static constexpr std::chrono::milliseconds kLinePause{3'000};
  std::chrono::steady_clock::time_point shown_at_ = std::chrono::steady_clock::now();
  bool is_line_open_ = false;
};

void print_recovering(const Config& config, const std::string& readable) {
  std::printf("cluster \"%s\" %s: %s\n", config.cluster.name.c_str(),
              paint(Colour::yellow, "recovers").c_str(),
              readable.empty()
                  ? "no transactions run meanwhile"
                  : ("snapshot_read_only transactions already run, on " + readable).c_str());
  std::fflush(stdout);
}

/// Returns problems that need attention at once, for example a start-up from an older snapshot.
std::vector<Problem> problems_of(const Config& config) {
  constexpr std::chrono::milliseconds kStatusTimeout{5'000};
  const auto status = ControlClient(config.control.endpoint)
                          .call(ControlOperation::status, Json::object(), kStatusTimeout);
  return status ? find_problems(*status) : std::vector<Problem>();
}

void print_problems(const Config& config) {
  for (const Problem& problem : problems_of(config)) {
    print_line("problem", paint(Colour::yellow, printable(problem.what)));
    print_line("", printable(problem.what_to_do));
  }
  std::fflush(stdout);
}

/// Prints the salvage report of this start-up, which is the newest report.
void print_salvaged(const Config& config) {
  const std::string path = newest_salvage_report(config.cluster.data_dir);
  std::ifstream file(path);
  const auto report = nlohmann::json::parse(file, nullptr, false);
  if (!report.is_object()) return;
  const auto left_out = report.value("left_out", nlohmann::json::array());
  const auto ranges = report.value("ranges", nlohmann::json::array());
  const std::string count = fmt::format("{} ranges of keys and {} parts of the log are missing",
                                        ranges.size(), left_out.size());
  const bool is_whole = ranges.empty() && left_out.empty();
  print_line("salvaged", is_whole ? "nothing is missing" : paint(Colour::yellow, count));
  constexpr size_t kMostLines = 20;
  for (size_t i = 0; i < left_out.size() && i < kMostLines; ++i) {
    if (left_out[i].is_string()) print_line("missing", printable(left_out[i].get<std::string>()));
  }
  for (size_t i = 0; i < ranges.size() && i < kMostLines; ++i) {
    print_line("missing", printable(fmt::format("storage {}: {}", ranges[i].value("name", ""),
                                                ranges[i].value("range", ""))));
  }
  print_line("report", path);
  std::fflush(stdout);
}

void print_json(const Json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

/// Prints what runs, and what needs attention, as one JSON object.
void print_start_json(const Config& config, const UpOptions& options) {
  Json json = running_json(config);
  for (const Problem& problem : problems_of(config)) {
    json["problems"].push_back({{"what", problem.what}, {"what_to_do", problem.what_to_do}});
  }
  if (options.salvages) json["salvage_report"] = newest_salvage_report(config.cluster.data_dir);
  print_json(json);
}

/// Prints the state of a cluster that recovers, and that snapshots can be read. `readable`: names
/// the newest of them.
void print_readable(const Config& config, const std::string& readable, bool json) {
  if (json) {
    print_json({{"schema_version", 1},
                {"cluster", config.cluster.name},
                {"state", "recovering"},
                {"readable", readable}});
  } else {
    print_line("wait for it", "atoll status --watch");
  }
}

Result<void> up(const ClusterChoice& choice, const UpOptions& options) {
  ATOLL_ASSIGN(const Config config, config_of_new_cluster(choice));
  LaunchOptions launch;
  launch.discards_data = options.discards_data;
  launch.salvages = options.salvages;
  launch.until_readable = options.until_readable;
  launch.config_file = canonical_config_file(choice.config_file);
  std::string readable;
  ProgressPrinter progress;
  launch.on_progress = [&](const StartReport& report) {
    if (!options.json) progress.show(report);
  };
  launch.on_recovering = [&](const std::string& what) {
    readable = what;
    progress.end();
    if (!options.json) print_recovering(config, readable);
  };
  const auto print_start = [&] {
    progress.end();
    if (options.json) return print_start_json(config, options);
    print_running(config);
    if (options.salvages) print_salvaged(config);
    print_problems(config);
  };
  // Called after the last use of a relative path and of the config file, which may be a pipe that
  // the shell opened.
  leave_caller();
  if (options.foreground) {
    const Result<void> ended = run_foreground(config, print_start, launch);
    progress.end();
    return ended;
  }
  const Result<void> started = start_background(config, launch);
  progress.end();
  if (!started) return started;
  if (options.until_readable && !readable.empty()) {
    print_readable(config, readable, options.json);
    return started;
  }
  print_start();
  return started;
}

}  // namespace

void add_up_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<UpOptions>();
  CLI::App* command = add_cluster_command(app, invocation, "up",
                                          "Start a cluster and print its endpoints", options, up);
  add_set_option(*command, invocation.choice.settings);
  command->add_flag(
      "--foreground", options->foreground,
      "Do not detach: the first SIGINT or SIGTERM stops it in order, the second at once");
  command->add_flag(
      "--discard-data", options->discards_data,
      "Start empty: move the content of cluster.data_dir and the nodes' directories into "
      "discarded-<n> in the same place");
  command
      ->add_flag("--salvage", options->salvages,
                 "Start without the data that cannot be read, and list what is missing; the old "
                 "files are moved into discarded-<n>, and none is deleted")
      ->excludes("--discard-data");
  command->add_flag("--until-readable", options->until_readable,
                    "Return as soon as snapshots can be read, before a recovery has ended");
  add_json_option(*command, options->json);
}

}  // namespace atolldb::cli
