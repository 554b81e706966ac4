// Paths of the files in a running cluster's run and log folders. `cluster.run_dir` and
// `cluster.log_dir` belong to one cluster. Their defaults end in its name.
#pragma once

#include <cstdint>
#include <string>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/config/config.h"

namespace atolldb {

/// File that exists while the cluster runs: JSON with name, launcher and endpoints.
inline std::string endpoints_path(const Config& config) {
  return config.cluster.run_dir + "/endpoints.json";
}
/// File that all processes of the cluster lock: JSON with their process ids.
inline std::string lock_path(const Config& config) { return config.cluster.run_dir + "/lock"; }
/// File in data_dir and in each log directory. All processes of a durable cluster lock it, so that
/// no other cluster uses the data (R31).
inline std::string directory_lock_path(const std::string& directory) { return directory + "/lock"; }
/// File with the effective config of the running cluster.
inline std::string running_config_path(const Config& config) {
  return config.cluster.run_dir + "/config.toml";
}
/// File with the metrics endpoints of the cluster, for Prometheus (file_sd). It outlives the run
/// folder: after `atoll down` it has no endpoints. Prometheus keeps those of a file that vanishes
/// behind a link.
inline std::string prometheus_targets_path(const Config& config) {
  return config.cluster.log_dir + "/prometheus-targets.json";
}
/// File with the failure of the last run, as JSON. It is next to the run folder, because that
/// folder is removed with the cluster.
inline std::string last_failure_path(const Config& config) {
  return config.cluster.run_dir + ".last_failure.json";
}
/// File that exists after the running cluster was restarted: JSON with the number of restarts and
/// the reason.
inline std::string restarts_path(const Config& config) {
  return config.cluster.run_dir + "/restarts.json";
}
/// File that exists while the cluster starts: JSON with its progress.
inline std::string start_path(const Config& config) {
  return config.cluster.run_dir + "/start.json";
}
inline std::string node_socket_path(const Config& config, uint32_t node) {
  CHECK(node < kMaxNodes);
  return config.cluster.run_dir + "/node" + std::to_string(node) + ".sock";
}
/// Socket to which clients of sessions connect (shared/session).
inline std::string session_socket_path(const std::string& run_dir, uint32_t node) {
  return run_dir + "/session" + std::to_string(node) + ".sock";
}
inline std::string node_endpoint(const Config& config, uint32_t node) {
  return "ipc://" + node_socket_path(config, node);
}
/// `role`: "launcher", "coordinator", "node3".
inline std::string log_path(const Config& config, const std::string& role) {
  CHECK(!role.empty());
  return config.cluster.log_dir + "/" + role + ".log";
}

}  // namespace atolldb
