// Main function of a child process (coordinator, node), before its own work starts.
#pragma once

#include <functional>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"
#include "shared/memory/segment_space.h"
#include "shared/process/handover.h"

namespace atolldb {

/// The checked handover from the launcher.
struct ChildContext {
  Handover handover;
  Config config;
  Logger logger;

  SegmentIdentity segment_identity() const;
};

/// Checks the processor, reads `--handover <fd>` from the command line, checks that the launcher
/// lives, and parses the launcher's config. Then calls `run`. Prints errors to standard error.
/// Returns the exit code for `main`.
int child_main(int argc, char** argv, const std::function<ExitCode(const ChildContext&)>& run);

}  // namespace atolldb
