// What the launcher writes for others to read: where a running cluster is found, and how the last
// one failed. The paths are in shared/process/run_paths.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/launcher/child.h"
#include "shared/config/config.h"
#include "shared/error.h"

namespace atolldb {

/// The endpoints of the cluster, and its targets for Prometheus. REQUIRES: all children run.
Result<void> announce(const Config& config, const std::vector<Child>& children);
/// Outlives the run folder.
Result<void> note_failure(const Config& config, const Error& error);

/// Of a cluster with cluster.restart = "recover" that has failed.
struct RestartNote {
  uint32_t count = 0;    // since `atoll up`, one under way included
  uint32_t attempt = 0;  // of a succession
  uint32_t most_attempts = 0;
  bool is_under_way = false;  // the cluster does not run yet
  int64_t time = 0;           // of the failure, seconds of the system's clock
  std::string reason;         // of the failure
};
/// In the run folder.
Result<void> note_restart(const Config& config, const RestartNote& note);

}  // namespace atolldb
