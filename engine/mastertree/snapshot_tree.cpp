#include "engine/mastertree/snapshot_tree.h"

#include <algorithm>
#include <cstring>

#include "engine/mastertree/descent.h"

namespace atolldb {

Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border) {
  for (SnapshotPointer pointer = root;;) {
    const PageHeader* header = nullptr;
    const Status status = worker.snapshot_page(pointer, header);
    if (status != Status::ok) return status;
    // Nobody writes to it: what finds slots in volatile pages, too, takes no pointer to const.
    TreePage* page = tree_page(const_cast<PageHeader*>(header));
    if (page->is_border()) {
      border = {pointer, border_page(page)};
      return Status::ok;
    }
    const InteriorPage* interior = interior_page(page);
    const uint32_t slot = interior->find(slice, interior->header.version().count());
    pointer =
        SnapshotPointer(interior->children[slot].snapshot_word.load(std::memory_order_relaxed));
  }
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
    std::memcpy(request.out, record->payload() + request.offset,
                std::min(request.count, length - request.offset));
    return Status::ok;
  }
}

}  // namespace atolldb
