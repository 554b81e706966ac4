// The volatile pages on the way to a slice, for those that change pages rather than records:
// merging, installing snapshots, looking at the shape.
#pragma once

#include <array>
#include <cstdint>

#include "engine/mastertree/build.h"
#include "engine/mastertree/descent.h"

namespace atolldb {

struct TreePath {
  static constexpr uint32_t kMaxLevels = 32;

  struct Step {
    Link link;  // leads to `page`
    InteriorPage* page;
  };
  std::array<Step, kMaxLevels> steps;  // from the root of the layer down
  uint32_t size = 0;
  Link link;                     // the last one: to the border page, or to none
  BorderPage* border = nullptr;  // null: there is a snapshot page at best (`link`)
  SliceRange range;              // of the last link
};

/// Follows the pointers of one layer without locks. False: something on the way has moved, or is
/// being replaced; a descent has adopted it meanwhile or will.
bool find_path(WorkerContext& worker, const Link& root, uint64_t slice, TreePath& path);

/// The same, but adopts what it finds, and looks again a few times.
bool reach_path(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                TreePath& path);

/// The children of an interior page, which nobody changes (its lock is held) or whose version was
/// read before and is compared afterwards.
class ChildRanges {
 public:
  ChildRanges(const InteriorPage& page, uint32_t count);
  uint32_t size() const { return size_; }
  /// In the order of their ranges: which child.
  uint32_t operator[](uint32_t position) const { return order_[position]; }
  SliceRange range(uint32_t position) const;

 private:
  const InteriorPage& page_;
  uint32_t size_;
  std::array<uint32_t, kInteriorCapacity> order_;
};

/// The pointer to the root of the layer that the keys with `prefix` (whole slices) share. False:
/// there are no volatile pages of it.
bool find_layer(WorkerContext& worker, StorageControl& storage, std::span<const std::byte> prefix,
                Link& link);

}  // namespace atolldb
