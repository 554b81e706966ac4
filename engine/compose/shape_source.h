// Interface through which composers obtain the fence maps of Master-trees: the ranges of their
// volatile pages (R44). Composer threads have no page slot of their own (R9), so a thread that has
// one collects the maps for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/mastertree/build.h"
#include "engine/mastertree/tree_shape.h"
#include "shared/base/status.h"

namespace atolldb {

struct ShapeSource {
  virtual ~ShapeSource() = default;
  /// Collects the fence map of the layer of the keys with `prefix`, as far as it overlaps `range`,
  /// like `collect_shape`. The map is empty if the storage no longer exists.
  /// Errors: those of `collect_shape`.
  /// Thread: any; calls are serialized.
  virtual Status shape_of(uint32_t storage_id, std::span<const std::byte> prefix,
                          const SliceRange& range, TreeShape& shape) = 0;
};

}  // namespace atolldb
