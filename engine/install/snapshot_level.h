// The pages of one level of a Master-tree layer in a snapshot. An installer stores them beside the
// pointers of the volatile pages (R44).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/mastertree/build.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/pointer.h"
#include "shared/base/status.h"

namespace atolldb {

/// A page of one level of a Master-tree layer in a snapshot.
struct SnapshotLevelPage {
  SliceRange range;
  SnapshotPointer page;
};

/// Pages of one level in a range, in ascending order.
struct SnapshotLevel {
  std::vector<SnapshotLevelPage> pages;
  bool is_damaged = false;                  // a part of the range cannot be read (R56)
  std::vector<SnapshotPointer> unreadable;  // pages above the level that could not be read
};

/// Returns whether the two ranges have a slice in common.
inline bool overlap(const SliceRange& a, const SliceRange& b) {
  return (a.high_is_end || b.low < a.high) && (b.high_is_end || a.low < b.high);
}

/// Collects, in ascending order, the pages of `level` below the layer's `root` whose ranges overlap
/// `range`. Collects none if `root` is null. Reads the pages above that level. Skips the pages
/// below a page that cannot be read (R56).
Status find_snapshot_level(WorkerContext& worker, SnapshotPointer root, uint32_t level,
                           const SliceRange& range, SnapshotLevel& found);

/// Returns the pages that fill exactly this range, if they are at least two. Returns none if there
/// are no such pages, or if one of them is a stand-in.
std::span<const SnapshotLevelPage> pages_that_fill(const std::vector<SnapshotLevelPage>& pages,
                                                   const SliceRange& range);

/// Returns the page with exactly this range, or null if there is none.
SnapshotPointer page_of_range(const std::vector<SnapshotLevelPage>& pages, const SliceRange& range);

}  // namespace atolldb
