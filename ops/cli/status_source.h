// Asks a cluster for its status, also while it starts or restarts.
#pragma once

#include <chrono>

#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

/// Returns the coordinator's status with the members `restarts`, `start`, and pins left behind. If
/// the coordinator does not answer yet, returns what the launcher has recorded, without `epochs`.
/// `config`: from find_reachable. `request`: members of the request (coordinator/README.md).
/// Returns code coordinator_unreachable if the cluster restarts, or if the coordinator hangs.
Result<Json> ask_status(const Config& config, const Json& request,
                        std::chrono::milliseconds timeout);

/// Returns whether a restart is under way. `restarts`: from restarts_of.
bool is_restarting(const Json& restarts);

}  // namespace atolldb::cli
