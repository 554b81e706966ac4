// What the launcher writes for others to read: where a running cluster is found, and how the last
// one failed. The paths are in shared/process/run_paths.h.
#pragma once

#include <vector>

#include "ops/launcher/child.h"
#include "shared/config/config.h"
#include "shared/error.h"

namespace atolldb {

/// The endpoints of the cluster, and its targets for Prometheus. REQUIRES: all children run.
Result<void> announce(const Config& config, const std::vector<Child>& children);
/// Outlives the run folder.
Result<void> note_failure(const Config& config, const Error& error);

}  // namespace atolldb
