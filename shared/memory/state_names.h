// Names of the states and types in shared memory: for logs, messages, status and commands.
#pragma once

#include <span>
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

}  // namespace atolldb
