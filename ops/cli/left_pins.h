// Pins that killed backups have left (R65): they keep snapshots and the log after them until the
// next backup of the cluster.
#pragma once

#include <cstdint>

#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

/// Returns whether an `atoll backup` of the cluster runs, or true if that cannot be found out.
bool may_back_up(const Config& config);

/// Adds `snapshots.left_pins` to the coordinator's answer to `status`: [{id, name, age_s}] of all
/// pins of backups, or an empty list if a backup runs. `age_s`: seconds since the backup began, or
/// null if the name does not say it. `unix_ms`: the time now.
void add_left_pins(Json& status, bool backup_runs, uint64_t unix_ms);

}  // namespace atolldb::cli
