// Control requests of commands to a running cluster.
#pragma once

#include <chrono>
#include <string_view>

#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

/// `config`: from find_running. If the cluster fails during the call, the error is returned within
/// a second. It names the failure if the launcher has recorded it (R64).
Result<Json> call_coordinator(const Config& config, ControlOperation operation, const Json& body,
                              std::chrono::milliseconds timeout);
Result<Json> call_node(const Config& config, uint32_t node, ControlOperation operation,
                       const Json& body, std::chrono::milliseconds timeout);

}  // namespace atolldb::cli
