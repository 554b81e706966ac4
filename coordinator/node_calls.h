// Calls from the coordinator to one node or to all nodes at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// Calls a node and blocks for its answer. Thread: any.
using NodeCall =
    std::function<Result<Json>(uint32_t node, ControlOperation operation, const Json& body)>;

/// Runs `action` for all nodes at once, on a thread each. If several nodes fail, returns an error
/// whose code is not `failed`, if there is one: `failed` only means that the run was aborted. The
/// message names the node.
Result<void> on_all_nodes(const Config& config,
                          const std::function<Result<void>(uint32_t node)>& action);

/// Sends the same request to all nodes at once, and waits for the answers. Errors: as on_all_nodes.
Result<void> ask_all_nodes(const Config& config, const NodeCall& call_node,
                           ControlOperation operation, const Json& body);

}  // namespace atolldb
