// Reading a Master-tree in a snapshot: immutable pages, so no versions, twins or retries.
#pragma once

#include "engine/mastertree/key.h"
#include "engine/mastertree/page.h"
#include "engine/mastertree/tree_read.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// Where a page hangs.
struct SnapshotPlace {
  SnapshotPointer parent;  // null: nowhere, it is the root of its layer
  uint32_t slot = 0;       // of the parent
};

/// Where a slice is, or would be: a border page, good until the worker's next snapshot page.
struct SnapshotBorder {
  SnapshotPointer pointer;
  BorderPage* page = nullptr;
  SnapshotPlace place;
};

/// As `scan_end`: nobody goes on to the pages behind.
inline constexpr uint64_t kNoScan = 0;

/// Descends one layer of a snapshot from `root`, whose range holds the slice. snapshot_unreadable,
/// cluster_failed. `scan_end`: who goes on to the pages behind, up to this slice, has the next one
/// loaded ahead.
Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border, uint64_t scan_end = kNoScan);

/// The border page behind the one at `place`, without a descent. ok with `page` null: the parent
/// has none behind it. snapshot_unreadable, cluster_failed.
Status next_snapshot_border(WorkerContext& worker, SnapshotPlace place, uint64_t scan_end,
                            SnapshotBorder& border);

/// Reads the record of the key, of which `rest` is left in the layer of `root`, as read_tree_record
/// does, but registers nothing: the pointer that led here answers for it. not_found, out_of_range,
/// snapshot_unreadable.
Status read_snapshot_record(WorkerContext& worker, SnapshotPointer root, LayerKey rest,
                            TreeRead& request);

}  // namespace atolldb
