// One sample of what a cluster serves about itself, for `atoll top`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/message/control_message.h"

namespace atolldb::top {

/// What the processes answered at one time. Answers that are missing are null.
struct Sample {
  uint64_t time_ns = 0;        // of the monotonic clock
  Json status;                 // of the coordinator, with `buckets` (coordinator/README.md)
  std::vector<Json> calls;     // by node: member `calls` of procedure.list (soc/README.md)
  std::vector<Json> sessions;  // by node: member `sessions` of session.list; empty if not asked
  std::string note;            // why an answer is missing, or ""

  /// Returns whether the counters of the nodes are known.
  bool has_counters() const { return status.is_object() && status.contains("epochs"); }
};

}  // namespace atolldb::top
