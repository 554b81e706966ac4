// Builds the error text for requests rejected during recovery: progress, and which transactions
// already run.
#pragma once

#include <string>

#include "shared/memory/control_layout.h"

namespace atolldb {

/// REQUIRES: the cluster is recovering. Thread: any, in any process that maps the segment.
std::string recovery_text(const ControlSegment& control);

}  // namespace atolldb
