#include "engine/mastertree/snapshot_tree.h"

#include <algorithm>
#include <cstring>

#include "engine/mastertree/descent.h"
#include "engine/mastertree/prefetch.h"
#include "shared/memory/copy_bytes.h"

namespace atolldb {

Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border) {
  const PageHeader* header = nullptr;
  Status status = worker.snapshot_page(root, header);
  for (SnapshotPointer pointer = root; status == Status::ok;) {
    // Only the cache writes into it (hints); and what finds slots in volatile pages, too, takes no
    // pointer to const.
    TreePage* page = tree_page(const_cast<PageHeader*>(header));
    if (page->is_border()) {
      border = {pointer, border_page(page)};
      return Status::ok;
    }
    InteriorPage* interior = interior_page(page);
    const uint32_t slot = interior->find(slice, interior->header.version().count());
    const bool is_leaf_next = interior->header.level == 1;
    DualPointer& child = interior->children[slot];
    pointer = SnapshotPointer(child.snapshot_word.load(std::memory_order_relaxed));
    status = worker.snapshot_child(child, header);
    // Whether it is the page is being checked: its lines come meanwhile.
    if (status == Status::ok) {
      prefetch_page_start(reinterpret_cast<const TreePage*>(header), is_leaf_next);
    }
  }
  return status;
}

Status read_snapshot_record(WorkerContext& worker, SnapshotPointer root, LayerKey rest,
                            TreeRead& request) {
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
    if (slot.match != Match::record) return Status::not_found;
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

}  // namespace atolldb
