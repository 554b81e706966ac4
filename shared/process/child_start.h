// The main function of a child process (coordinator, node): what comes before its own work.
#pragma once

#include <functional>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/memory/segment_space.h"
#include "shared/process/handover.h"

namespace atolldb {

/// What the launcher gave a child, checked.
struct ChildContext {
  Handover handover;
  Config config;
  Logger logger;

  SegmentIdentity segment_identity() const;
};

/// Checks the processor, reads `--handover <fd>` from the command line, makes sure that the
/// launcher lives, parses its config; then `run`. An error goes to standard error. The exit code
/// for `main`.
int child_main(int argc, char** argv, const std::function<ExitCode(const ChildContext&)>& run);

}  // namespace atolldb
