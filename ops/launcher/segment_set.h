// All segments of a cluster, as open files. Nobody here maps them.
#pragma once

#include <map>
#include <string>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

class SegmentSet {
 public:
  /// Checks that they fit into the machine, then makes them (zero bytes, no memory taken yet).
  static Result<SegmentSet> create(const Config& config);

  /// Descriptors by name of what the process of `node`, or of kCoordinator, maps.
  std::map<std::string, int> of_process(uint32_t node) const;
  /// Descriptors of all: for thread mode.
  std::map<std::string, int> all() const;

 private:
  std::map<std::string, UniqueFd> files_;
  uint32_t node_count_ = 0;
};

}  // namespace atolldb
