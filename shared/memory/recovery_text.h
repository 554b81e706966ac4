// What whoever is refused while the cluster recovers is told: how far it is, and what runs already.
#pragma once

#include <string>

#include "shared/memory/control_layout.h"

namespace atolldb {

/// Of a cluster that recovers; any process that maps the segment.
std::string recovery_text(const ControlSegment& control);

}  // namespace atolldb
