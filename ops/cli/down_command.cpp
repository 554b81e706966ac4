// `atoll down`: stops a cluster and waits for its end.
#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "ops/cli/command.h"
#include "ops/launcher/run_folder.h"
#include "shared/message/control_client.h"
#include "shared/process/process_id.h"

namespace atolldb::cli {
namespace {

/// Asks the coordinator; when it does not answer, the launcher itself.
void request_stop(const Config& config, const UniqueFd& launcher, bool now) {
  constexpr std::chrono::milliseconds kPatience{2000};
  const ControlClient client(config.control.endpoint);
  if (client.call("down", Json{{"now", now}}, kPatience)) return;
  send_signal(launcher, SIGTERM);
  // Another signal, as two equal ones may become one: the second stops at once.
  if (now) send_signal(launcher, SIGINT);
}

Result<void> down(const ClusterChoice& choice, bool now) {
  const Result<Config> config = find_running(choice);
  if (!config) return std::unexpected(config.error());
  const std::string name = "cluster \"" + config->cluster.name + "\"";
  const auto launcher = running_launcher(*config);
  if (!launcher) return make_error(ExitCode::not_running, name + ": has just stopped");
  const Result<UniqueFd> ended = open_pidfd(launcher->pid);
  if (!ended || !is_alive(*launcher)) {
    return make_error(ExitCode::not_running, name + ": has just stopped");
  }
  request_stop(*config, *ended, now);
  constexpr std::chrono::milliseconds kMargin{10'000};
  const auto patience = config->cluster.hang_limit + config->procedures.time_limit + kMargin;
  pollfd readable{ended->get(), POLLIN, 0};
  if (poll(&readable, 1, static_cast<int>(patience.count())) <= 0) {
    return make_error(ExitCode::failed, name + ": has not stopped within " +
                                            std::to_string(patience.count()) +
                                            " ms: try `atoll down --now`");
  }
  if (const std::string failure = last_failure(*config); !failure.empty()) {
    return make_error(ExitCode::failed, failure);
  }
  std::printf("%s has stopped\n", name.c_str());
  return {};
}

}  // namespace

void add_down_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("down", "Stop a cluster and wait for its end");
  add_cluster_options(*command, invocation);
  const auto now = std::make_shared<bool>(false);
  command->add_flag("--now", *now, "Do not wait for running procedures (as a second `down`)");
  command->callback([&invocation, now] {
    invocation.run = [&invocation, now] { return down(invocation.choice, *now); };
  });
}

}  // namespace atolldb::cli
