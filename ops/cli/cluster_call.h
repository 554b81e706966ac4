// Control requests of commands to a running cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/base/process_id.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

/// The state of a cluster before a request, which explains later why the cluster gave no answer.
class ClusterBefore {
 public:
  /// `config`: from find_running. REQUIRES: it outlives this object.
  explicit ClusterBefore(const Config& config);

  /// Returns the error of a request without an answer. If the cluster has failed since, the code is
  /// coordinator_unreachable, and the message names the failure if the launcher has recorded it
  /// (R64). Waits up to half a second for that record.
  Error explain(Error error) const;

 private:
  /// Returns the recorded reason, or "" if there is none.
  std::string reason() const;
  bool launcher_is_alive() const;

  const Config& config_;
  const std::optional<ProcessId> launcher_;
  const std::string failure_;
};

/// Returns code usage if the cluster has no such node. `what`: the argument that names the node.
Result<void> check_node(const Config& config, uint32_t node, const std::string& what);

/// `config`: from find_running. If the cluster fails during the call, the error is returned within
/// a second. It names the failure if the launcher has recorded it (R64).
Result<Json> call_coordinator(const Config& config, ControlOperation operation, const Json& body,
                              std::chrono::milliseconds timeout);
Result<Json> call_node(const Config& config, uint32_t node, ControlOperation operation,
                       const Json& body, std::chrono::milliseconds timeout);

}  // namespace atolldb::cli
