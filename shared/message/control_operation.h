// The operations of control messages: name, servers and limits of each, in one table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "shared/message/control_limits.h"

namespace atolldb {

/// The operations, in the order of the table in control_operation.cpp.
enum class ControlOperation : uint8_t {
  // Served by the coordinator: cluster and storages.
  status,
  down,
  config_reload,  // served by nodes, too
  storage_create,
  storage_drop,
  storage_list,
  storage_describe,
  // Served by the coordinator: snapshots and checkpoints.
  snapshot_take,
  snapshot_pin,
  snapshot_unpin,
  snapshot_remove,
  snapshot_damage,
  checkpoint_take,
  // Served by nodes, for clients.
  describe,
  procedure_list,
  job_start,
  job_wait,
  job_stop,
  session_list,
  session_kill,
  library_prepare,
  library_publish,
  library_discard,
  // Served by nodes, for the coordinator.
  log_begin,
  pages_release,
  glean_prepare,
  glean_capture,
  glean_map,
  glean_wait,
  glean_end,
  snapshot_align,
  snapshot_install,
  snapshot_open,
  snapshot_publish,
  snapshot_withdraw,
  snapshot_reads,
  checkpoint_divide,
  checkpoint_begin,
  checkpoint_wait,
  checkpoint_end,
  replay_begin,
  replay_wait,
  replay_exchange,
  replay_clean,
  replay_end,
  /// An operation that is not in the table. Its requests have the limits of small requests.
  unknown,
};

/// Processes that serve an operation.
enum class ControlServers : uint8_t { none = 0, coordinator = 1, nodes = 2, both = 3 };

struct ControlOperationEntry {
  ControlOperation operation;
  std::string_view name;  // value of the member `op` of a request
  ControlServers servers;
  ControlLimits limits;
  bool takes_binary = false;  // a request may have a binary part
};

/// Returns the entries of all operations except `unknown`, ordered by operation.
std::span<const ControlOperationEntry> control_operations();

/// Returns the entry of an operation. The name of `unknown` is empty.
const ControlOperationEntry& entry_of(ControlOperation operation);
inline std::string_view to_string(ControlOperation operation) { return entry_of(operation).name; }
inline ControlLimits control_limits(ControlOperation operation) {
  return entry_of(operation).limits;
}
/// Returns whether processes of this kind serve the operation.
bool is_served_by(ControlServers servers, ControlOperation operation);

/// Returns ControlOperation::unknown if no operation has this name.
ControlOperation control_operation(std::string_view name);
/// Returns the limits of a request with this op.
inline ControlLimits control_limits(std::string_view op) {
  return control_limits(control_operation(op));
}

}  // namespace atolldb
