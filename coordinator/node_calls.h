// Calls from the coordinator to one node or to all nodes at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// Calls a node and blocks for its answer. Thread: any.
using NodeCall =
    std::function<Result<Json>(uint32_t node, ControlOperation operation, const Json& body)>;

/// Runs `action` for all nodes at once, on one thread per node. The error message names the node.
/// If several nodes fail, prefers an error with a code other than `failed`. A node also reports
/// `failed` if it had to abort its work because another node has failed.
Result<void> on_all_nodes(const Config& config,
                          const std::function<Result<void>(uint32_t node)>& action);

/// Sends the same request to all nodes at once, and waits for the answers. Returns errors as
/// on_all_nodes does.
Result<void> ask_all_nodes(const Config& config, const NodeCall& call_node,
                           ControlOperation operation, const Json& body);

/// Returns the sums of the numbers in the nodes' answers, by name, but for the version "v".
Json sum_of_progress(const std::vector<Json>& answers);

}  // namespace atolldb
