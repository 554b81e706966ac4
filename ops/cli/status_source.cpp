#include "ops/cli/status_source.h"

#include <fmt/format.h>

#include <string>

#include "ops/backup/backup_time.h"
#include "ops/cli/cluster_finder.h"
#include "ops/cli/left_pins.h"
#include "shared/message/control_client.h"

namespace atolldb::cli {
namespace {

std::string restarting_text(const Config& config, const Json& restarts) {
  return fmt::format(
      "cluster \"{}\": is being started again (restart {} of at most {} in succession) after: {}: "
      "wait for it with `atoll status`, or end it with `atoll down`",
      config.cluster.name, restarts.value("attempt", 0u), restarts.value("most_attempts", 0u),
      restarts.value("last_reason", ""));
}

/// Returns the status of a cluster whose coordinator does not answer yet, from the launcher's
/// notes.
Json starting_status(const Config& config, const StartReport& report, const Json& restarts) {
  return {{"name", config.cluster.name},
          {"state", report.state},
          {"durability", durability_text(config)},
          {"start", Json::parse(to_json_line(report))},
          {"restarts", restarts}};
}

}  // namespace

bool is_restarting(const Json& restarts) {
  return restarts.is_object() && restarts.value("under_way", false);
}

Result<Json> ask_status(const Config& config, const Json& request,
                        std::chrono::milliseconds timeout) {
  const Json restarts = restarts_of(config);
  if (const auto report = start_report(config); report && !report->is_served()) {
    return starting_status(config, *report, restarts);
  }
  const bool backed_up_before = may_back_up(config);
  Result<Json> answer =
      ControlClient(config.control.endpoint).call(ControlOperation::status, request, timeout);
  const auto report = start_report(config);
  if (answer) {
    (*answer)["restarts"] = restarts;
    // Pins count as left behind only if no backup ran before or after the status request.
    add_left_pins(*answer, backed_up_before || may_back_up(config), unix_ms_now());
    if (report) (*answer)["start"] = Json::parse(to_json_line(*report));
    return answer;
  }
  if (answer.error().code != ExitCode::coordinator_unreachable) return answer;
  if (report) return starting_status(config, *report, restarts);
  if (is_restarting(restarts)) {
    return make_error(ExitCode::coordinator_unreachable, restarting_text(config, restarts));
  }
  return make_error(ExitCode::coordinator_unreachable,
                    "cluster \"" + config.cluster.name +
                        "\": its launcher runs but the coordinator does not answer: see `atoll "
                        "logs coordinator`, `atoll down --now` stops the cluster");
}

}  // namespace atolldb::cli
