#include "ops/cli/cluster_call.h"

#include <optional>
#include <string>
#include <thread>

#include "ops/cli/cluster_finder.h"
#include "ops/launcher/run_folder.h"
#include "shared/base/process_id.h"
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

/// State of the cluster before the request.
struct Before {
  std::optional<ProcessId> launcher;
  std::string failure;
};

/// Returns the reason why the cluster does not answer, or "" if the launcher does not record one
/// soon.
std::string reason_of(const Config& config, const Before& before) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience{500};
  constexpr std::chrono::milliseconds kPause{10};
  const auto give_up = Clock::now() + kPatience;
  for (;;) {
    // Checks first whether the launcher lives, and then reads the failure, because the launcher
    // writes the failure before it ends.
    const bool may_note = before.launcher && is_alive(*before.launcher) && Clock::now() < give_up;
    std::string failure = noted_failure(config);
    if (failure != before.failure) return failure;
    if (!may_note) return "";
    std::this_thread::sleep_for(kPause);
  }
}

Result<Json> call(const Config& config, const std::string& endpoint, ControlOperation operation,
                  const Json& body, std::chrono::milliseconds timeout) {
  const Before before{running_launcher(config), noted_failure(config)};
  Result<Json> answer = ControlClient(endpoint).call(operation, body, timeout);
  if (answer || answer.error().code != ExitCode::coordinator_unreachable) return answer;
  const std::string reason = reason_of(config, before);
  if (reason.empty()) return answer;
  return make_error(answer.error().code,
                    answer.error().message + ": the cluster failed: " + reason);
}

}  // namespace

Result<Json> call_coordinator(const Config& config, ControlOperation operation, const Json& body,
                              std::chrono::milliseconds timeout) {
  return call(config, config.control.endpoint, operation, body, timeout);
}

Result<Json> call_node(const Config& config, uint32_t node, ControlOperation operation,
                       const Json& body, std::chrono::milliseconds timeout) {
  return call(config, node_endpoint(config, node), operation, body, timeout);
}

}  // namespace atolldb::cli
