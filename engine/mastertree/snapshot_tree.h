// Reads a Master-tree in a snapshot. Its pages are immutable, so there are no versions, twins or
// retries. This header also has the operations of transactions that read a snapshot (R18).
#pragma once

#include <cstdint>

#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/tree_access.h"
#include "engine/transaction/storage_handle.h"
#include "engine/transaction/transaction.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// The parent of a snapshot page, and the page's slot there.
struct SnapshotPlace {
  SnapshotPointer parent;  // null: the page is the root of its layer
  uint32_t slot = 0;       // slot in the parent
};

/// The border page that covers a slice. The address is valid until the worker reads its next
/// snapshot page.
struct SnapshotBorder {
  SnapshotPointer pointer;
  BorderPage* page = nullptr;
  SnapshotPlace place;
  /// Probable address of the page that the scan visits next, or null. Its start and its end were
  /// prefetched. It may be evicted, so only further prefetches may use it.
  const PageHeader* next = nullptr;
};

/// The border pages that a scan visits after the one that it looks up. If that page is missing in
/// the cache, the look-up reads it and the next ones at the same time. Pages that are adjacent in
/// key order may lie anywhere in the files, so the separators of their parent name the next ones.
///
/// If the separators show that the scan ends soon, the look-up reads exactly the pages up to the
/// end. Otherwise it reads at most `distance` pages ahead. It registers none of them.
struct ScanAhead {
  /// Last slice of the scan. A forward scan needs the pages that begin at this slice or before it,
  /// a backward scan those that end after it. A scan without a bound has the largest slice, or 0 if
  /// it is backward.
  uint64_t end = 0;
  uint32_t distance = 0;  // see scan_distance; 0: the caller is no scan
  bool is_forward = true;
  /// The pointer that led to the root of the look-up, if it is in a volatile page of level 1.
  const DualPointer* link = nullptr;
};

/// Descends one layer of a snapshot from `root`. REQUIRES: the root's range holds the slice. If a
/// scan reaches the next border page, parts of that page are prefetched. Returns ok,
/// snapshot_unreadable or cluster_failed.
Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border, const ScanAhead& ahead = {});

/// Finds the name of the border page that covers a slice, without reading it. If `root` is a border
/// page itself, returns its name. Errors: as for find_snapshot_border.
Status name_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotPointer& border);

/// Finds the next border page after `place`, without a descent. Returns ok (with a null `page` if
/// the parent has no later child), snapshot_unreadable or cluster_failed.
Status next_snapshot_border(WorkerContext& worker, SnapshotPlace place, const ScanAhead& ahead,
                            SnapshotBorder& border);

/// Reads the record of a key as read_tree_record does. `rest` is the part of the key left in the
/// layer of `root`. Registers nothing: the registered pointer above `root`, or the snapshot, stands
/// for the record. Returns ok, not_found, out_of_range or snapshot_unreadable.
Status read_snapshot_record(WorkerContext& worker, SnapshotPointer root, LayerKey rest,
                            TreeRead& request);

/// Operations of a transaction that reads a snapshot (R18). If the transaction is not active, each
/// operation returns invalid_argument. REQUIRES: the transaction is not serializable, and the
/// caller has checked all lengths except that of the key in `read`.
class SnapshotTreeAccess {
 public:
  SnapshotTreeAccess(Transaction& txn, const StorageHandle& handle) : txn_(txn), handle_(handle) {}

  /// Reads as read_tree_record does, but registers nothing. `request.seen` is the version of the
  /// snapshot's record, or 0 if the snapshot has none. For a record that this transaction has
  /// written, reads the version only if `wants_version` is set, because the snapshot page may be
  /// unreadable.
  Status read(Bytes key, TreeRead& request) { return check_and_read(key, request, false); }
  /// Does the same as `read`, for a record that will be written. May return read_only_transaction.
  Status read_for_write(Bytes key, TreeRead& request) { return check_and_read(key, request, true); }

  Status insert(Bytes key, Bytes payload);
  Status upsert(Bytes key, Bytes payload);
  Status update(Bytes key, Bytes payload);
  Status update_range(Bytes key, uint32_t offset, Bytes bytes);
  Status increment(Bytes key, uint32_t offset, IncrementType type, const void* delta);
  Status erase(Bytes key);

 private:
  struct Whole;
  Status check_and_read(Bytes key, TreeRead& request, bool writes);
  Status read_in_snapshot(Bytes key, TreeRead& request);
  Status find_version(Bytes key, Vid& seen);
  Status read_whole(Bytes key, Whole& record);
  Status find_place(Bytes key, uint32_t payload_bytes, RecordRef& ref);
  Status plan(Bytes key, Bytes payload);

  Transaction& txn_;
  const StorageHandle& handle_;
};

}  // namespace atolldb
