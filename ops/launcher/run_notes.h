// Files that the launcher writes for other programs: the endpoints of a running cluster, and how
// the last run failed. shared/process/run_paths.h has their paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/launcher/child.h"
#include "shared/base/error.h"
#include "shared/config/config.h"

namespace atolldb {

/// Writes the endpoints of the cluster and its Prometheus targets. REQUIRES: all children run.
Result<void> announce(const Config& config, const std::vector<Child>& children);
/// Removes all endpoints from the Prometheus targets, because the cluster was told to stop. After a
/// failure they stay, so that Prometheus sees that the cluster is down.
Result<void> withdraw_targets(const Config& config);
/// Writes the failure note, which outlives the run folder.
Result<void> note_failure(const Config& config, const Error& error);

/// Describes a failed cluster with cluster.restart = "recover".
struct RestartNote {
  uint32_t count = 0;    // since `atoll up`, including a restart in progress
  uint32_t attempt = 0;  // number in the current series of restarts
  uint32_t most_attempts = 0;
  bool is_under_way = false;  // the cluster does not run yet
  int64_t time = 0;           // time of the failure, in seconds of the system clock
  std::string reason;         // reason of the failure
};
/// Writes the note into the run folder.
Result<void> note_restart(const Config& config, const RestartNote& note);

}  // namespace atolldb
