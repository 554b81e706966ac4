#include "engine/mastertree/snapshot_tree.h"

#include <algorithm>

#include "engine/mastertree/descent.h"
#include "engine/mastertree/prefetch.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {

namespace {

/// Opens child `slot` of the interior page that the worker got last. Sets the child's name and
/// address.
Status open_child(WorkerContext& worker, InteriorPage* interior, uint32_t slot, uint64_t scan_end,
                  SnapshotPointer& pointer, const PageHeader*& header) {
  const bool is_leaf_next = interior->header.level == 1;
  if (is_leaf_next && slot + 1 < interior->header.version().count() &&
      interior->separators[slot + 1] <= scan_end) {
    const PageHeader* next = worker.guess_snapshot_child(interior->children[slot + 1]);
    if (next != nullptr) prefetch_scanned_page(next);
  }
  DCHECK(slot < kInteriorCapacity && interior->header.level != 0);
  DualPointer& child = interior->children[slot];
  pointer = SnapshotPointer(child.snapshot_word.load(std::memory_order_relaxed));
  const Status status = worker.snapshot_child(child, header);
  // Prefetches the start of the child. The descent will wait for the first cache line, to check the
  // page's level; the other lines arrive meanwhile.
  if (status == Status::ok) {
    prefetch_page_start(reinterpret_cast<const TreePage*>(header), is_leaf_next);
  }
  return status;
}

}  // namespace

Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border, uint64_t scan_end) {
  border.place = {};
  const PageHeader* header = nullptr;
  Status status = worker.snapshot_page(root, header);
  for (SnapshotPointer pointer = root; status == Status::ok;) {
    // Casts const away, because these functions also serve volatile pages and take non-const
    // pointers. Only the cache writes to this page (hints).
    TreePage* page = tree_page(const_cast<PageHeader*>(header));
    if (page->is_border()) {
      border.pointer = pointer;
      border.page = border_page(page);
      return Status::ok;
    }
    InteriorPage* interior = interior_page(page);
    border.place = {pointer, interior->find(slice, interior->header.version().count())};
    status = open_child(worker, interior, border.place.slot, scan_end, pointer, header);
  }
  return status;
}

Status name_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotPointer& border) {
  border = root;
  const PageHeader* header = nullptr;
  Status status = worker.snapshot_page(root, header);
  while (status == Status::ok && header->level != 0) {
    InteriorPage* interior = interior_page(tree_page(const_cast<PageHeader*>(header)));
    DualPointer& child = interior->children[interior->find(slice, header->version().count())];
    border = SnapshotPointer(child.snapshot_word.load(std::memory_order_relaxed));
    if (header->level == 1) break;
    status = worker.snapshot_child(child, header);
  }
  worker.leave_snapshots();
  return status;
}

Status next_snapshot_border(WorkerContext& worker, SnapshotPlace place, uint64_t scan_end,
                            SnapshotBorder& border) {
  border = {};
  if (place.parent.is_null()) return Status::ok;
  const PageHeader* header = nullptr;
  Status status = worker.snapshot_page(place.parent, header);
  if (status != Status::ok) return status;
  InteriorPage* interior = interior_page(tree_page(const_cast<PageHeader*>(header)));
  const uint32_t slot = place.slot + 1;
  // In an intact file the parent of a border page has level 1. If it has not, the caller descends
  // again, and the descent reports the damage.
  if (interior->header.level != 1 || slot >= interior->header.version().count()) return Status::ok;
  status = open_child(worker, interior, slot, scan_end, border.pointer, header);
  if (status != Status::ok) return status;
  border.page = border_page(tree_page(const_cast<PageHeader*>(header)));
  border.place = {place.parent, slot};
  return Status::ok;
}

namespace {

Status read_record(WorkerContext& worker, SnapshotPointer root, LayerKey rest, TreeRead& request) {
  for (;;) {
    SnapshotBorder border;
    const Status status = find_snapshot_border(worker, root, rest.slice, border);
    if (status != Status::ok) return status;
    const SlotView slot = find_slot(worker, border.page, border.page->header.version(), rest);
    if (slot.match == Match::next_layer) {
      root =
          SnapshotPointer(slot.record->next_layer()->snapshot_word.load(std::memory_order_relaxed));
      rest = rest.next();
      continue;
    }
    if (slot.match != Match::record) {
      request.max_removed_vid = border.page->header.max_removed_vid.load(std::memory_order_relaxed);
      return Status::not_found;
    }
    TreeRecord* record = slot.record;
    const uint32_t length = record->payload_bytes.load(std::memory_order_relaxed);
    request.seen = record->head.load_acquire();
    request.payload_bytes = length;
    if (request.exact && request.offset + uint64_t{request.count} > length) {
      return Status::out_of_range;
    }
    if (request.offset >= length || request.count == 0) return Status::ok;
    copy_bytes(request.out, record->payload() + request.offset,
               std::min(request.count, length - request.offset));
    return Status::ok;
  }
}

}  // namespace

Status read_snapshot_record(WorkerContext& worker, SnapshotPointer root, LayerKey rest,
                            TreeRead& request) {
  const Status status = read_record(worker, root, rest, request);
  worker.leave_snapshots();
  return status;
}

}  // namespace atolldb
