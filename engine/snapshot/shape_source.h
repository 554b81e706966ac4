// Where composers learn how the volatile pages of a Master-tree lie (R44). Composer threads have no
// page slot of their own (R9): whoever has one collects shapes for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/mastertree/build.h"
#include "engine/mastertree/tree_shape.h"
#include "shared/status.h"

namespace atolldb {

struct ShapeSource {
  virtual ~ShapeSource() = default;
  /// As `collect_shape`: of the layer of the keys with `prefix`, as far as it overlaps `range`.
  /// Empty if the storage is not there any more. Any thread; one call at a time goes on, the others
  /// wait for it. Errors: its.
  virtual Status shape_of(uint32_t storage_id, std::span<const std::byte> prefix,
                          const SliceRange& range, TreeShape& shape) = 0;
};

}  // namespace atolldb
