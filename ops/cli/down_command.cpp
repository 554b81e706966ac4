// `atoll down`: stops a cluster and waits for its end.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>

#include "ops/cli/command.h"
#include "ops/launcher/run_notes.h"
#include "shared/base/path_errors.h"
#include "shared/base/process_id.h"
#include "shared/base/try.h"
#include "shared/message/control_client.h"

namespace atolldb::cli {
namespace {

struct DownOptions {
  bool now = false;
  bool json = false;
};

/// Asks the coordinator to stop, or signals the launcher if the coordinator does not answer.
Result<void> request_stop(const LiveCluster& cluster, const UniqueFd& launcher, bool now) {
  constexpr std::chrono::milliseconds kPatience{2000};
  const Config& config = cluster.config;
  const bool is_reachable = !cluster.is_run_folder_gone && !is_starting(config);
  const ControlClient client(config.control.endpoint);
  if (is_reachable && client.call(ControlOperation::down, Json{{"now", now}}, kPatience)) return {};
  if (!send_signal(launcher, SIGTERM) && is_refusal(errno)) {
    return make_error(ExitCode::failed,
                      "cluster \"" + config.cluster.name + "\": its launcher (pid " +
                          std::to_string(cluster.launcher.pid) + ") accepts no signal from " +
                          user_text(geteuid()) + ": run the command as its user or as root");
  }
  // The second signal stops at once. It differs from the first, because the kernel may merge equal
  // pending signals.
  if (now) send_signal(launcher, SIGINT);
  return {};
}

/// Returns the chosen cluster. If it does not run, removes the Prometheus targets that a killed
/// launcher or a failure has left, because the user wants the cluster to be down.
Result<LiveCluster> find_cluster_to_stop(const ClusterChoice& choice) {
  Result<LiveCluster> found = find_live(choice);
  if (found || found.error().code != ExitCode::not_running) return found;
  if (const Result<Config> config = find_config(choice)) {
    ATOLL_TRY(withdraw_targets(*config));
  }
  return found;
}

Result<void> down(const ClusterChoice& choice, const DownOptions& options) {
  ATOLL_ASSIGN(const LiveCluster found, find_cluster_to_stop(choice));
  const Config& config = found.config;
  const std::string name = "cluster \"" + config.cluster.name + "\"";
  const Result<UniqueFd> ended = open_pidfd(found.launcher.pid);
  if (!ended || !is_alive(found.launcher)) {
    return make_error(ExitCode::not_running, name + ": has just stopped");
  }
  if (found.is_run_folder_gone && !options.json) {
    std::printf("%s: its run folder %s was deleted: stopping its launcher (pid %d)\n", name.c_str(),
                config.cluster.run_dir.c_str(), found.launcher.pid);
    std::fflush(stdout);
  }
  ATOLL_TRY(request_stop(found, *ended, options.now));
  constexpr std::chrono::milliseconds kMargin{10'000};
  const auto patience =
      config.cluster.hang_limit.get() + config.procedures.time_limit.get() + kMargin;
  pollfd readable{ended->get(), POLLIN, 0};
  if (poll(&readable, 1, static_cast<int>(patience.count())) <= 0) {
    return make_error(ExitCode::failed, name + ": has not stopped within " +
                                            std::to_string(patience.count()) +
                                            " ms: try `atoll down --now`");
  }
  if (const std::string failure = last_failure(config); !failure.empty()) {
    return make_error(ExitCode::failed, failure);
  }
  if (options.json) {
    const Json whole = {{"schema_version", 1},
                        {"cluster", config.cluster.name},
                        {"launcher_pid", found.launcher.pid},
                        {"run_folder_was_deleted", found.is_run_folder_gone}};
    std::printf("%s\n", whole.dump(2).c_str());
  } else {
    std::printf("%s has stopped\n", name.c_str());
  }
  return {};
}

}  // namespace

void add_down_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<DownOptions>();
  CLI::App* const command = add_cluster_command(
      app, invocation, "down", "Stop a cluster and wait for its end", options, down);
  command->add_flag("--now", options->now,
                    "Do not wait for running procedures; a second `atoll down` does the same");
  add_json_option(*command, options->json);
}

}  // namespace atolldb::cli
