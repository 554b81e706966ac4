// Captures volatile border pages of a Master-tree for a new snapshot: writes images of pages that
// have not changed since the snapshot's epoch (R75).
//
// Such a page already holds the result of the log records of its range. Mappers leave these records
// out, and composers use the image as the new page of the range. A table that grows at its end
// consists mostly of such pages, so most of its log records need no sorting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/compose/compose.h"
#include "engine/compose/page_output.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/mastertree/build.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/error.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

struct CaptureTask {
  SliceRange range;         // only pages that lie in it are captured
  uint64_t base_epoch = 0;  // pages without later changes are not captured
  uint64_t epoch = 0;       // pages with later changes are not captured
  /// Writes an image to a file of the new snapshot. Returns the pointer to the new page.
  std::function<Result<SnapshotPointer>(PageBuffer& image)> write;
  std::function<bool()> cancelled = {};  // polled every few pages; empty: never cancelled
  /// A page is not captured if its records need fewer bytes than this, and fewer than half of the
  /// slots of a page. Composers can join the records of such a page with those of its neighbours.
  uint32_t least_bytes = kBorderUsableBytes / 2;
  /// Maximum number of ranges. Adjacent captured pages form one range. When the maximum is reached,
  /// only pages that extend the last range are captured.
  size_t max_ranges = kMaxCapturedRanges;
};

/// Captures pages of the storage and appends them to `captured`, ascending. Skips pages with layers
/// below them, pages of few records, and the root. Captures no page if the storage was dropped, or
/// if some commit of `task.epoch` may not have ended. While it writes, it publishes no begin epoch,
/// so it delays no reuse of pages. Errors: those of `write`; code failed if the cluster has failed
/// or `cancelled` returned true. Thread: any thread with its own page slot (R9), which is idle on
/// return.
Result<void> capture_pages(WorkerContext& worker, StorageControl& storage, const CaptureTask& task,
                           std::vector<CapturedPage>& captured);

/// Joins adjacent pages to ranges, and appends these ranges to `ranges`. REQUIRES: `pages` ascend.
void add_captured_ranges(uint32_t storage_id, const std::vector<CapturedPage>& pages,
                         std::vector<CapturedRange>& ranges);

}  // namespace atolldb
