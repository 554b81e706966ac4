// `atoll demo`: a cluster with a load, and what to try next.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ops/cli/bench_cluster.h"
#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "ops/cluster/cluster.h"
#include "ops/demo/demo_load.h"
#include "ops/demo/demo_text.h"
#include "ops/launcher/run_folder.h"
#include "shared/base/try.h"
#include "shared/process/run_paths.h"
#include "shared/process/start_up.h"

namespace atolldb::cli {
namespace {

using DemoClock = std::chrono::steady_clock;

struct DemoOptions {
  std::string directory;  // empty: a temporary folder
  uint32_t seconds = 0;   // 0: until interrupted
  uint32_t per_second = 2'000;
  bool keep = false;
  bool json = false;
};

/// Prints an event of --json on one line.
void print_event(const Json& event) {
  std::printf("%s\n", event.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

constexpr uint32_t kMaxDemoSeconds = 86'400;
constexpr uint32_t kMaxTransfersPerSecond = 1'000'000;
/// Demos of one user at the same time.
constexpr uint32_t kMaxDemos = 100;
constexpr std::chrono::milliseconds kDemoPeriod{1'000};

Result<void> check_demo_options(const DemoOptions& options) {
  const bench::Range ranges[] = {{"--seconds", options.seconds, 0, kMaxDemoSeconds},
                                 {"--rate", options.per_second, 1, kMaxTransfersPerSecond}};
  return bench::check_ranges("demo", ranges);
}

/// Returns the first of "demo", "demo-2", ... that no running cluster has.
Result<Config> config_with_free_name() {
  for (uint32_t number = 1; number <= kMaxDemos; ++number) {
    const std::string name = number == 1 ? "demo" : "demo-" + std::to_string(number);
    ATOLL_ASSIGN(Config config, config_of_new_cluster({name, "", {}}));
    if (!running_launcher(config)) return config;
  }
  return make_error(ExitCode::resources,
                    "demo: " + std::to_string(kMaxDemos) + " demos run: stop one of them");
}

/// Returns a config with small memory, free ports, and all files in `folder`.
Result<Config> demo_config(const std::string& folder) {
  ATOLL_ASSIGN(Config config, config_with_free_name());
  const auto cpus = static_cast<uint32_t>(Machine::detect().cpus.size());
  config.nodes.assign(std::clamp(cpus, 1u, 2u), config.nodes.front());
  for (NodeConfig& node : config.nodes) node.workers = 1;
  config.cluster.data_dir = folder + "/data";
  config.cluster.log_dir = folder + "/log";
  config.memory.volatile_pool = uint64_t{64} << 20;
  config.memory.snapshot_cache = uint64_t{16} << 20;
  config.memory.log_buffer = uint64_t{4} << 20;
  config.durability.log_file_size = uint64_t{16} << 20;
  // Snapshots that a user can watch.
  config.gleaner.interval = std::chrono::seconds(30);
  config.metrics.base_port = 0;
  config.status_page.port = 0;
  config.cluster.restart = RestartPolicy::never;
  return config;
}

/// Folder of the demo's files. The destructor removes it, and the given folder if the demo has made
/// it.
class DemoFolder {
 public:
  static Result<DemoFolder> make(const DemoOptions& options) {
    std::error_code error;
    std::filesystem::path parent = options.directory;
    if (options.directory.empty()) parent = std::filesystem::temp_directory_path(error);
    if (parent.empty()) parent = "/tmp";
    parent = std::filesystem::absolute(parent, error);
    DemoFolder folder;
    folder.keeps_ = options.keep;
    if (!std::filesystem::exists(parent, error)) folder.made_parent_ = parent;
    ATOLL_ASSIGN(folder.path_,
                 new_folder(parent / "atoll-demo",
                            options.directory.empty() ? "set TMPDIR to a folder that can be written"
                                                      : "give another --dir"));
    return folder;
  }
  DemoFolder(DemoFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")),
        made_parent_(std::exchange(other.made_parent_, "")),
        keeps_(other.keeps_) {}
  DemoFolder& operator=(DemoFolder&&) = delete;
  ~DemoFolder() {
    if (keeps_ || path_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    if (!made_parent_.empty()) std::filesystem::remove(made_parent_, ignored);
  }
  const std::string& path() const { return path_; }
  /// Keeps the files, and adds to the error where they are.
  std::unexpected<Error> keep_for(Error error) {
    keeps_ = true;
    error.message += ": its files are in " + path_;
    return std::unexpected(std::move(error));
  }

 private:
  DemoFolder() = default;
  std::string path_;
  std::filesystem::path made_parent_;
  bool keeps_ = false;
};

demo::Place place_of(const Config& config, const DemoOptions& options, const DemoFolder& folder) {
  demo::Place place;
  place.program = program_invocation_name;
  if (place.program.contains('/')) {
    std::error_code error;
    place.program = std::filesystem::canonical("/proc/self/exe", error).string();
  }
  place.cluster = config.cluster.name;
  place.needs_name = !find_live({}).has_value();
  place.nodes = static_cast<uint32_t>(config.nodes.size());
  place.per_second = options.per_second;
  place.folder = folder.path();
  place.keeps_folder = options.keep;
  std::ifstream file(endpoints_path(config));
  const Json endpoints = Json::parse(file, nullptr, false);
  if (!endpoints.is_object()) return place;
  place.status_page = endpoints.value("status_page", "");
  place.metrics = endpoints.value("metrics", Json::object()).value("coordinator", "");
  return place;
}

/// Waits for a signal at most until the time. Returns whether there was one.
bool has_signal_until(const UniqueFd& signals, DemoClock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - DemoClock::now());
  pollfd ready{signals.get(), POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) <= 0) return false;
  signalfd_siginfo signal{};
  return read(signals.get(), &signal, sizeof(signal)) == sizeof(signal);
}

std::string sum_text(const std::optional<int64_t>& sum) {
  if (!sum) return "busy";
  return *sum == demo::Load::expected_sum() ? "correct" : "WRONG: " + std::to_string(*sum);
}

std::unexpected<Error> wrong_sum(int64_t sum) {
  return make_error(ExitCode::corruption, "demo: the sum of all balances is " +
                                              std::to_string(sum) + ", expected " +
                                              std::to_string(demo::Load::expected_sum()) +
                                              ": keep the files with --keep, and report this");
}

/// Shows the progress until a signal, the end of the time, or the end of the cluster.
Result<void> watch_load(demo::Load& load, const DemoOptions& options, const UniqueFd& signals) {
  const auto begun = DemoClock::now();
  uint64_t last = 0;
  for (uint32_t second = 1;; ++second) {
    if (has_signal_until(signals, begun + second * kDemoPeriod)) return {};
    if (!load.is_alive()) {
      return make_error(ExitCode::not_running, "demo: the cluster has ended before the demo");
    }
    const uint64_t transfers = load.counts().transfers.load(std::memory_order_relaxed);
    const std::optional<int64_t> sum = load.audit();
    if (sum && *sum != demo::Load::expected_sum()) return wrong_sum(*sum);
    if (is_terminal() && !options.json) {
      const demo::Progress progress{transfers, static_cast<double>(transfers - last),
                                    load.counts().failures.load(std::memory_order_relaxed)};
      std::printf("\r\033[K%s", demo::progress_line(progress, sum_text(sum)).c_str());
      std::fflush(stdout);
    }
    last = transfers;
    if (options.seconds != 0 && second >= options.seconds) return {};
  }
}

/// Ends the load, audits the accounts, and prints the result.
Result<void> finish_load(demo::Load& load, DemoClock::time_point begun, bool json) {
  load.stop();
  const std::optional<int64_t> sum = load.audit();
  const double seconds = std::chrono::duration<double>(DemoClock::now() - begun).count();
  const auto transfers = load.counts().transfers.load(std::memory_order_relaxed);
  const demo::Progress progress{transfers, static_cast<double>(transfers) / seconds,
                                load.counts().failures.load(std::memory_order_relaxed)};
  if (json) {
    print_event(demo::result_json(progress, seconds, sum, demo::Load::expected_sum()));
  } else {
    std::printf("%s%s\n", is_terminal() ? "\r\033[K" : "",
                demo::progress_line(progress, sum_text(sum)).c_str());
    std::fflush(stdout);
  }
  if (!sum) return make_error(ExitCode::failed, "demo: the last audit did not commit");
  return *sum == demo::Load::expected_sum() ? Result<void>() : wrong_sum(*sum);
}

Result<void> show_demo(Cluster& cluster, const DemoOptions& options, const DemoFolder& folder,
                       const UniqueFd& signals) {
  ATOLL_ASSIGN(const auto load, demo::Load::start(cluster, options.per_second));
  const demo::Place place = place_of(cluster.config(), options, folder);
  if (options.json) {
    print_event(demo::introduction_json(place));
  } else {
    std::printf("%s", demo::introduction(place).c_str());
    std::fflush(stdout);
  }
  const auto begun = DemoClock::now();
  const Result<void> watched = watch_load(*load, options, signals);
  // The line of progress is open.
  if (!watched && is_terminal() && !options.json) std::printf("\n");
  return watched ? finish_load(*load, begun, options.json) : watched;
}

/// Prints how to use the files that were kept.
Result<void> print_kept(const Config& config, const DemoFolder& folder, bool json) {
  const std::string file = folder.path() + "/demo.toml";
  if (!(std::ofstream(file) << to_toml(config)).flush()) {
    return make_error(ExitCode::failed, "demo: " + file + ": cannot be written");
  }
  if (json) {
    print_event({{"schema_version", 1}, {"event", "kept"}, {"config_file", file}});
    return {};
  }
  std::printf("kept %s: start the cluster again with `atoll up -c %s`\n", folder.path().c_str(),
              file.c_str());
  return {};
}

Result<void> run_demo(const DemoOptions& options) {
  ATOLL_TRY(check_demo_options(options));
  ATOLL_ASSIGN(DemoFolder folder, DemoFolder::make(options));
  ATOLL_ASSIGN(const Config config, demo_config(folder.path()));
  ATOLL_ASSIGN(const UniqueFd signals, receive_signals({SIGINT, SIGTERM, SIGHUP}));
  const auto cluster = Cluster::launch(config, LaunchMode::process);
  if (!cluster) return folder.keep_for(cluster.error());
  const Result<void> shown = show_demo(**cluster, options, folder, signals);
  Result<void> stopped;
  {
    const InterruptWatch watch(**cluster, signals);  // a second Ctrl-C stops the cluster at once
    stopped = (*cluster)->shutdown();
  }
  if (!stopped) return folder.keep_for(stopped.error());
  if (!shown && shown.error().code == ExitCode::corruption) return folder.keep_for(shown.error());
  ATOLL_TRY(shown);
  return options.keep ? print_kept(config, folder, options.json) : Result<void>();
}

}  // namespace

void add_demo_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<DemoOptions>();
  CLI::App* command = app.add_subcommand(
      "demo", "Start a small cluster with a load, and print what to try; Ctrl-C ends it");
  command
      ->add_option("--dir", options->directory,
                   "Folder for its files, in a new folder below [the temporary folder]")
      ->type_name("DIR");
  command->add_option("--seconds", options->seconds, "End after this time; 0: at Ctrl-C")
      ->capture_default_str();
  command->add_option("--rate", options->per_second, "Transfers per second, and as many reads")
      ->capture_default_str();
  command->add_flag("--keep", options->keep, "Keep the files, and say how to start them again");
  command->add_flag("--json", options->json, "Print a JSON object per event, for programs");
  command->callback(
      [&invocation, options] { invocation.run = [options] { return run_demo(*options); }; });
}

}  // namespace atolldb::cli
