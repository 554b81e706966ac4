#include "ops/cli/cluster_call.h"

#include <string>
#include <thread>
#include <utility>

#include "ops/cli/cluster_finder.h"
#include "ops/launcher/run_folder.h"
#include "shared/message/control_client.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {
namespace {

/// Returns the latest failure that the launcher has recorded. This is the failure of the last run,
/// or else the reason of the latest restart.
std::string noted_failure(const Config& config) {
  std::string failure = last_failure(config);
  if (!failure.empty()) return failure;
  const Json restarts = restarts_of(config);
  return restarts.is_object() ? restarts.value("last_reason", "") : "";
}

Result<Json> call(const Config& config, const std::string& endpoint, ControlOperation operation,
                  const Json& body, std::chrono::milliseconds timeout) {
  const ClusterBefore before(config);
  Result<Json> answer = ControlClient(endpoint).call(operation, body, timeout);
  if (answer || answer.error().code != ExitCode::coordinator_unreachable) return answer;
  return std::unexpected(before.explain(std::move(answer).error()));
}

}  // namespace

ClusterBefore::ClusterBefore(const Config& config)
    : config_(config), launcher_(running_launcher(config)), failure_(noted_failure(config)) {}

bool ClusterBefore::launcher_is_alive() const { return launcher_ && is_alive(*launcher_); }

std::string ClusterBefore::reason() const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience{500};
  constexpr std::chrono::milliseconds kPause{10};
  const auto give_up = Clock::now() + kPatience;
  for (;;) {
    // Checks first whether the launcher lives, and then reads the failure, because the launcher
    // writes the failure before it ends.
    const bool may_note = launcher_is_alive() && Clock::now() < give_up;
    std::string failure = noted_failure(config_);
    if (failure != failure_) return failure;
    if (!may_note) return "";
    std::this_thread::sleep_for(kPause);
  }
}

Error ClusterBefore::explain(Error error) const {
  const std::string failure = reason();
  if (!failure.empty()) error.message += ": the cluster failed: " + failure;
  if (!failure.empty() || !launcher_is_alive()) error.code = ExitCode::coordinator_unreachable;
  return error;
}

Result<void> check_node(const Config& config, uint32_t node, const std::string& what) {
  if (node < config.nodes.size()) return {};
  return make_error(ExitCode::usage, what + ": cluster \"" + config.cluster.name +
                                         "\" has nodes 0 to " +
                                         std::to_string(config.nodes.size() - 1));
}

Result<Json> call_coordinator(const Config& config, ControlOperation operation, const Json& body,
                              std::chrono::milliseconds timeout) {
  return call(config, config.control.endpoint, operation, body, timeout);
}

Result<Json> call_node(const Config& config, uint32_t node, ControlOperation operation,
                       const Json& body, std::chrono::milliseconds timeout) {
  return call(config, node_endpoint(config, node), operation, body, timeout);
}

}  // namespace atolldb::cli
