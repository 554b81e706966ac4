// Names of the states and types in shared memory, and the text about a recovery. Logs, messages,
// status and commands use them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// Returns "unknown" for an invalid value.
std::string_view to_string(ClusterState state);
std::string_view to_string(NodeState state);
std::string_view to_string(StorageState state);
std::string_view to_string(StorageType type);

/// Returns StorageType::none for an unknown name.
StorageType storage_type(std::string_view name);
/// Returns the names of all types that a storage can have.
std::span<const std::string_view> storage_type_names();

/// Builds the error text for requests rejected during recovery: progress, and which transactions
/// already run. `has_snapshots`: the cluster recovers from snapshots, not from a checkpoint.
/// Thread: any, in any process that maps the segment.
std::string recovery_text(const ControlSegment& control, bool has_snapshots);

}  // namespace atolldb
