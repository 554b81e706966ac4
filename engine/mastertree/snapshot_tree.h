// Reading a Master-tree in a snapshot: immutable pages, so no versions, twins or retries.
#pragma once

#include "engine/mastertree/key.h"
#include "engine/mastertree/page.h"
#include "engine/mastertree/tree_read.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// Where a slice is, or would be: a border page, good until the worker's next snapshot page.
struct SnapshotBorder {
  SnapshotPointer pointer;
  BorderPage* page = nullptr;
};

/// Descends one layer of a snapshot from `root`, whose range holds the slice. snapshot_unreadable.
Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border);

/// Reads the record of the key, of which `rest` is left in the layer of `root`, as read_tree_record
/// does, but registers nothing: the pointer that led here answers for it. not_found, out_of_range,
/// snapshot_unreadable.
Status read_snapshot_record(WorkerContext& worker, SnapshotPointer root, LayerKey rest,
                            TreeRead& request);

}  // namespace atolldb
