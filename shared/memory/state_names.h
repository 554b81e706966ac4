// The words for states and types of the shared memory: in logs, messages, status and commands.
#pragma once

#include <span>
#include <string_view>

#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// "unknown" for a value that is none.
std::string_view to_string(ClusterState state);
std::string_view to_string(NodeState state);
std::string_view to_string(StorageState state);
std::string_view to_string(StorageType type);

/// none when there is no such type.
StorageType storage_type(std::string_view name);
/// Of the types that a storage can have.
std::span<const std::string_view> storage_type_names();

}  // namespace atolldb
