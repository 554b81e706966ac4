// Finds the pages of one level of a Master-tree layer in a snapshot, with their ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/mastertree/build.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

struct SnapshotLevelPage {
  SliceRange range;
  SnapshotPointer page;
};

/// Collects the pages of `level` whose ranges overlap `range`, ascending, below the layer's root. A
/// null root has none. Reads the pages above that level. Skips the pages below a page that cannot
/// be read (R56).
Status find_snapshot_level(WorkerContext& worker, SnapshotPointer root, uint32_t level,
                           const SliceRange& range, std::vector<SnapshotLevelPage>& pages);

/// Returns the page with exactly this range, or null if there is none.
SnapshotPointer page_of_range(const std::vector<SnapshotLevelPage>& pages, const SliceRange& range);

}  // namespace atolldb
