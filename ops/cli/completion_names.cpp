// Names for the completion of a command line, by the cheapest request that has them.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "engine/log/savepoint.h"
#include "ops/cli/completion.h"
#include "ops/cli/wal_data.h"
#include "shared/message/control_client.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {
namespace {

/// A user who has pressed the tab key does not wait longer.
constexpr std::chrono::milliseconds kCompletionTimeout{1'000};

std::vector<std::string> members(const Result<Json>& answer, const char* list, const char* member) {
  std::vector<std::string> names;
  if (!answer) return names;
  for (const Json& entry : answer->value(list, Json::array())) {
    names.push_back(entry.value(member, ""));
  }
  return names;
}

/// Pins and snapshots are read from the savepoint, as `atoll snapshot ls` does. So they are offered
/// for a stopped cluster, too.
std::vector<std::string> snapshot_names(NameKind kind, const ClusterChoice& choice) {
  PosixFileSystem files;
  const auto data = find_log_data(files, choice, {});
  std::vector<std::string> names;
  if (!data) return names;
  const Savepoint& savepoint = data->savepoint;
  if (kind == NameKind::pin) {
    for (const PinnedSnapshot& pin : savepoint.pinned) names.push_back(pin.name);
    return names;
  }
  if (savepoint.snapshot != 0) names.push_back(std::to_string(savepoint.snapshot));
  for (const KeptSnapshot& kept : savepoint.kept) names.push_back(std::to_string(kept.id));
  for (const PinnedSnapshot& pin : savepoint.pinned) names.push_back(std::to_string(pin.id));
  return names;
}

std::vector<std::string> node_numbers(const Config& config, const std::string& prefix) {
  std::vector<std::string> names;
  for (size_t node = 0; node < config.nodes.size(); ++node) {
    names.push_back(prefix + std::to_string(node));
  }
  return names;
}

std::vector<std::string> session_names(const Config& config) {
  std::vector<std::string> names;
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    const auto answer =
        ControlClient(node_endpoint(config, node))
            .call(ControlOperation::session_list, Json::object(), kCompletionTimeout);
    if (!answer) continue;
    for (const Json& session : answer->value("sessions", Json::array())) {
      names.push_back(std::to_string(node) + "/" +
                      std::to_string(session.value("session", uint32_t{0})));
    }
  }
  return names;
}

std::vector<std::string> process_names(const ClusterChoice& choice) {
  const auto config = find_config(choice);
  std::vector<std::string> names =
      config ? node_numbers(*config, "node") : std::vector<std::string>{};
  names.insert(names.end(), {"coordinator", "launcher"});
  return names;
}

std::vector<std::string> unsorted_names(NameKind kind, const ClusterChoice& choice) {
  if (kind == NameKind::cluster) return running_cluster_names();
  if (kind == NameKind::process) return process_names(choice);
  if (kind == NameKind::pin || kind == NameKind::snapshot) return snapshot_names(kind, choice);
  const auto config = find_running(choice);
  if (!config) return {};
  const auto ask = [&](const std::string& endpoint, ControlOperation operation) {
    return ControlClient(endpoint).call(operation, Json::object(), kCompletionTimeout);
  };
  if (kind == NameKind::storage) {
    return members(ask(config->control.endpoint, ControlOperation::storage_list), "storages",
                   "name");
  }
  if (kind == NameKind::procedure) {
    return members(ask(node_endpoint(*config, 0), ControlOperation::procedure_list), "procedures",
                   "name");
  }
  return kind == NameKind::node ? node_numbers(*config, "") : session_names(*config);
}

}  // namespace

std::vector<std::string> names_of(NameKind kind, const ClusterChoice& choice) {
  std::vector<std::string> names = unsorted_names(kind, choice);
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

}  // namespace atolldb::cli
