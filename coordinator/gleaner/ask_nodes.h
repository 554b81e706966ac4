// How the coordinator asks nodes, one or all at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// How the coordinator asks a node; blocks for an answer. Any thread.
using NodeCall = std::function<Result<Json>(uint32_t node, std::string_view op, const Json& body)>;

/// On all at once, a thread each; of several errors the one that says most, with the node's number.
Result<void> on_all_nodes(const Config& config,
                          const std::function<Result<void>(uint32_t node)>& action);

}  // namespace atolldb
