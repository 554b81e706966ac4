// What the loggers of all nodes have written, and what they lack, as their metrics show it.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// Thread: any.
class LoggerWatch {
 public:
  /// REQUIRES: the lists outlive the watch, and have an entry for each node.
  LoggerWatch(const std::vector<NodeShared*>& nodes,
              const std::vector<const MetricsSegment*>& metrics);

  /// Returns the bytes of log that each node has written since the cluster began.
  std::vector<uint64_t> bytes_by_node() const;
  /// Returns the bytes of log that the busiest node has written since the cluster began.
  uint64_t most_bytes() const;
  /// Returns whether a logger has no room for its next file. A caller that polls sees each change.
  bool lacks_files() const;

 private:
  const std::vector<NodeShared*>& nodes_;
  const std::vector<const MetricsSegment*>& metrics_;
};

}  // namespace atolldb
