// Reads a Master-tree in a snapshot. Its pages are immutable, so there are no versions, twins or
// retries.
#pragma once

#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/tree_read.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// The parent of a snapshot page, and the page's slot there.
struct SnapshotPlace {
  SnapshotPointer parent;  // null: the page is the root of its layer
  uint32_t slot = 0;       // in the parent
};

/// The border page that covers a slice. The address is valid until the worker reads its next
/// snapshot page.
struct SnapshotBorder {
  SnapshotPointer pointer;
  BorderPage* page = nullptr;
  SnapshotPlace place;
};

/// Value of `scan_end` if the caller does not continue to the following pages.
inline constexpr uint64_t kNoScan = 0;

/// Descends one layer of a snapshot from `root`. REQUIRES: the root's range holds the slice.
/// `scan_end`: the last slice of the caller's scan; the next border page is prefetched if the scan
/// reaches it. Returns ok, snapshot_unreadable or cluster_failed.
Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border, uint64_t scan_end = kNoScan);

/// Finds the next border page after `place`, without a descent. Returns ok (with a null `page` if
/// the parent has no later child), snapshot_unreadable or cluster_failed.
Status next_snapshot_border(WorkerContext& worker, SnapshotPlace place, uint64_t scan_end,
                            SnapshotBorder& border);

/// Reads the record of a key as read_tree_record does. `rest` is the part of the key left in the
/// layer of `root`. Registers nothing: the pointer that led here covers the record. Returns ok,
/// not_found, out_of_range or snapshot_unreadable.
Status read_snapshot_record(WorkerContext& worker, SnapshotPointer root, LayerKey rest,
                            TreeRead& request);

}  // namespace atolldb
