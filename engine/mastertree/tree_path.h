// The volatile pages on the path to a slice, for code that changes pages rather than records:
// merging, installing snapshots, collecting fence maps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/mastertree/build.h"
#include "engine/mastertree/descent.h"
#include "shared/base/check.h"

namespace atolldb {

/// Volatile pages of one layer on the path to a slice.
struct TreePath {
  static constexpr uint32_t kMaxLevels = 32;

  struct Step {
    Link link;  // leads to `page`
    InteriorPage* page;
  };
  std::array<Step, kMaxLevels> steps;  // interior pages, from the root of the layer down
  uint32_t size = 0;
  Link link;                     // last link: to the border page, or to a missing page
  BorderPage* border = nullptr;  // null: `link` leads to no volatile page
  SliceRange range;              // range of the last link
};

/// Follows the pointers of one layer without locks. Returns false if a page on the path has moved
/// or is being replaced. A descent adopts such a page later, if it has not done so already.
bool find_path(WorkerContext& worker, const Link& root, uint64_t slice, TreePath& path);

/// Does the same as `find_path`, but adopts moved pages on the path, and retries a bounded number
/// of times.
bool reach_path(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                TreePath& path);

/// The children of an interior page, in the order of their ranges. REQUIRES: the caller holds the
/// page lock, or has read the page version before and compares it afterwards.
class ChildRanges {
 public:
  ChildRanges(const InteriorPage& page, uint32_t count);
  uint32_t size() const { return size_; }
  /// Returns the slot of the child at this position in the order of ranges.
  uint32_t operator[](uint32_t position) const {
    DCHECK(position < size_);
    return order_[position];
  }
  SliceRange range(uint32_t position) const;
  /// Returns the position of the child whose range has the slice, or of the last one.
  uint32_t position_of(uint64_t slice) const {
    DCHECK(size_ != 0);
    const auto* const begin = order_.data();
    const auto* const after =
        std::upper_bound(begin, begin + size_, slice,
                         [&](uint64_t one, uint32_t slot) { return one < page_.separators[slot]; });
    return (after == begin ? size_ : static_cast<uint32_t>(after - begin)) - 1;
  }

 private:
  const InteriorPage& page_;
  uint32_t size_;
  std::array<uint32_t, kInteriorCapacity> order_;
};

/// Finds the pointer to the root of the layer that the keys with `prefix` (whole slices) share.
/// Returns false if the layer has no volatile pages. `link`: on call the root of the first layer.
bool find_layer_below(WorkerContext& worker, StorageControl& storage,
                      std::span<const std::byte> prefix, Link& link);
inline bool find_layer(WorkerContext& worker, StorageControl& storage,
                       std::span<const std::byte> prefix, Link& link) {
  link = root_link(storage);
  return find_layer_below(worker, storage, prefix, link);
}

}  // namespace atolldb
