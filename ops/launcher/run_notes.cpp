#include "ops/launcher/run_notes.h"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "ops/launcher/run_folder.h"
#include "shared/base/limits.h"
#include "shared/base/process_id.h"
#include "shared/base/try.h"
#include "shared/file/file_errors.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

}  // namespace

Result<void> announce(const Config& config, const std::vector<Child>& children) {
  const ProcessId self = this_process();
  Json endpoints = {{"schema_version", 1},
                    {"name", config.cluster.name},
                    {"launcher_pid", self.pid},
                    {"start_time", self.start_time},
                    {"coordinator_endpoint", config.control.endpoint},
                    {"node_endpoints", Json::array()},
                    {"metrics", Json::object()},
                    {"processes", Json::array()}};
  for (const Child& child : children) {
    if (child.node != kCoordinator) {
      endpoints["node_endpoints"].push_back(node_endpoint(config, child.node));
    }
    if (!child.metrics.empty()) endpoints["metrics"][child.role] = child.metrics;
    if (!child.network.empty()) endpoints["network"][child.role] = Json::parse(child.network);
    if (!child.status_page.empty()) endpoints["status_page"] = child.status_page;
    endpoints["processes"].push_back({{"role", child.role},
                                      {"pid", child.id.pid},
                                      {"start_time", child.id.start_time},
                                      {"log", child.log_file}});
  }
  Json targets = Json::array();
  for (const auto& [role, endpoint] : endpoints["metrics"].items()) {
    // Prometheus would make `instance` from the port, and a process that moves to another port
    // would begin new series.
    targets.push_back({{"targets", {endpoint}},
                       {"labels",
                        {{"cluster", config.cluster.name},
                         {"process", role},
                         {"instance", config.cluster.name + "/" + role}}}});
  }
  for (const auto& [path, json] : {std::pair{prometheus_targets_path(config), &targets},
                                   std::pair{endpoints_path(config), &endpoints}}) {
    ATOLL_TRY(RunFolder::write_file(path, json->dump(2) + "\n"));
  }
  return {};
}

Result<void> withdraw_targets(const Config& config) {
  const std::string path = prometheus_targets_path(config);
  if (access(path.c_str(), F_OK) != 0) return {};  // the cluster has never announced any
  return RunFolder::write_file(path, "[]\n");
}

Result<void> note_failure(const Config& config, const Error& error) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Json note = {{"schema_version", 1},
               {"name", config.cluster.name},
               {"time", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
               {"code", static_cast<int>(error.code)},
               {"message", error.message}};
  if (const auto failure = file_failure_in(error.message)) {
    note["file"] = failure->file;
    note["errno"] = failure->error_number;
  }
  return RunFolder::write_file(last_failure_path(config), note.dump(2) + "\n");
}

Result<void> note_restart(const Config& config, const RestartNote& note) {
  const Json json = {{"schema_version", 1},
                     {"count", note.count},
                     {"attempt", note.attempt},
                     {"most_attempts", note.most_attempts},
                     {"under_way", note.is_under_way},
                     {"last_time", note.time},
                     {"last_reason", note.reason}};
  return RunFolder::write_file(restarts_path(config), json.dump(2) + "\n");
}

}  // namespace atolldb
