// The files of all segments of a cluster. The launcher does not map them.
#pragma once

#include <map>
#include <string>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"
#include "shared/config/config.h"

namespace atolldb {

class SegmentSet {
 public:
  /// Checks that the segments fit the machine, then makes their files. The files contain zeros, and
  /// take no memory yet.
  static Result<SegmentSet> create(const Config& config);

  /// Returns the descriptors, by name, of the segments that the process of `node` (or kCoordinator)
  /// maps.
  std::map<std::string, int> of_process(uint32_t node) const;
  /// Returns all descriptors, for thread mode.
  std::map<std::string, int> all() const;

 private:
  std::map<std::string, UniqueFd> files_;
  uint32_t node_count_ = 0;
};

}  // namespace atolldb
