// The pages of one level of a Master-tree's layer in a snapshot, with their ranges.
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

/// Those whose ranges overlap `range`, ascending, below the layer's root (null: none). Reads the
/// pages above them, those below pages that cannot be read left out (R56).
Status find_snapshot_level(WorkerContext& worker, SnapshotPointer root, uint32_t level,
                           const SliceRange& range, std::vector<SnapshotLevelPage>& pages);

/// The one with this very range; null: none.
SnapshotPointer page_of_range(const std::vector<SnapshotLevelPage>& pages, const SliceRange& range);

}  // namespace atolldb
