#include "engine/mastertree/snapshot_tree.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/format/slot_search.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/prefetch.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {

namespace {

/// Returns whether the scan ends in the range of this page. False if the scan has no bound.
bool ends_within(const InteriorPage& page, const ScanAhead& ahead) {
  if (!ahead.is_forward) return ahead.end != 0 && page.low <= ahead.end;
  return page.high_is_end() ? ahead.end != ~uint64_t{0} : ahead.end < page.high;
}

/// Reads the page `pointer`, the child in `slot` of a page of level 1, together with the children
/// that the scan visits next, if they are missing. `parent` may be a volatile page. Omits children
/// that have volatile pages, and those that were appended after the sorted ones (R3). Ends the
/// validity of all snapshot pages. Not inlined, so that look-ups of cached pages stay short.
[[gnu::noinline]] void read_scanned(WorkerContext& worker, const InteriorPage& parent,
                                    uint32_t slot, SnapshotPointer pointer,
                                    const ScanAhead& ahead) {
  DCHECK(parent.header.level == 1 && slot < parent.header.version().count());
  constexpr uint32_t kMostAhead = kPagesPerRead - 1;
  const uint32_t sorted = std::min(parent.sorted_count(), parent.header.version().count());
  uint64_t reached = parent.separators[slot];
  const uint32_t after = parent.count_at_or_below(reached, sorted);
  const uint32_t before = after - (slot < sorted ? 1 : 0);  // number of children before this one
  const uint32_t there = std::min(kMostAhead, ahead.is_forward ? sorted - after : before);
  DCHECK(before <= after && after <= sorted && !pointer.is_null());
  const auto slot_of = [&](uint32_t i) {
    DCHECK(i < there);
    return ahead.is_forward ? after + i : before - 1 - i;
  };
  uint32_t within = 0;  // number of children, at most kMostAhead, that belong to the scan
  for (; within < there; ++within) {
    const uint64_t next = parent.separators[slot_of(within)];
    if (ahead.is_forward ? next > ahead.end : reached <= ahead.end) break;
    reached = next;
  }
  const bool is_near = within < kMostAhead && ends_within(parent, ahead);
  const uint32_t wanted = is_near ? within : std::min(within, ahead.distance);
  std::array<SnapshotPointer, kPagesPerRead> pages{pointer};
  uint32_t count = 1;
  for (uint32_t i = 0; i < wanted; ++i) {
    const DualPointer& child = parent.children[slot_of(i)];
    // Relaxed: the name is a hint.
    const SnapshotPointer page(child.snapshot_word.load(std::memory_order_relaxed));
    if (child.load_acquire().is_null() && !page.is_null()) pages[count++] = page;
  }
  DCHECK(count <= 1 + within && count <= kPagesPerRead);
  if (count == 1) return;
  const uint32_t read = worker.read_snapshot_pages(std::span(pages).first(count));
  if (read > 1) worker.metrics().scan_pages_ahead.add(read - 1);
}

/// Loads the root of a look-up.
Status open_root(WorkerContext& worker, SnapshotPointer root, const ScanAhead& ahead,
                 const PageHeader*& header) {
  if (ahead.link != nullptr) {
    header = worker.find_snapshot_page(root);
    if (header != nullptr) return Status::ok;
    const InteriorPage& parent = *interior_page(tree_page(page_of(ahead.link)));
    DCHECK(parent.header.is_snapshot == 0 && ahead.distance != 0);
    read_scanned(worker, parent, static_cast<uint32_t>(ahead.link - parent.children), root, ahead);
  }
  return worker.snapshot_page(root, header);
}

/// Returns the probable address of the page that the scan visits after the child in `slot` of a
/// page of level 1. Returns null if the scan does not visit it, or if the cache has not noted it.
const PageHeader* guess_next(const WorkerContext& worker, const InteriorPage& interior,
                             uint32_t slot, const ScanAhead& ahead) {
  DCHECK(interior.header.level == 1);
  if (ahead.is_forward) {
    const uint32_t next = slot + 1;
    if (next >= interior.header.version().count() || interior.separators[next] > ahead.end) {
      return nullptr;
    }
    return worker.guess_snapshot_child(interior.children[next]);
  }
  if (slot == 0 || interior.separators[slot] <= ahead.end) return nullptr;
  return worker.guess_snapshot_child(interior.children[slot - 1]);
}

/// Opens the child at `border.place` of the interior page that the worker got last. Sets the
/// child's name and address, and the page after it. If the child is missing in the cache, a scan
/// also reads the next children.
Status open_child(WorkerContext& worker, InteriorPage* interior, const ScanAhead& ahead,
                  SnapshotBorder& border, const PageHeader*& header) {
  const uint32_t slot = border.place.slot;
  const bool is_leaf_next = interior->header.level == 1;
  border.next = is_leaf_next ? guess_next(worker, *interior, slot, ahead) : nullptr;
  if (border.next != nullptr) prefetch_scanned_page(border.next);
  DCHECK(slot < kInteriorCapacity && interior->header.level != 0);
  DualPointer& child = interior->children[slot];
  const SnapshotPointer pointer(child.snapshot_word.load(std::memory_order_relaxed));
  border.pointer = pointer;
  header = worker.find_snapshot_child(child, pointer);
  if (header == nullptr) [[unlikely]] {
    // The search may have begun a new round, in which the address of the parent is not valid (R39).
    // So a scan gets the parent again.
    const PageHeader* parent = nullptr;
    if (is_leaf_next && ahead.distance != 0 &&
        worker.snapshot_page(border.place.parent, parent) == Status::ok) {
      read_scanned(worker, *reinterpret_cast<const InteriorPage*>(parent), slot, pointer, ahead);
    }
    const Status status = worker.snapshot_page(pointer, header);
    if (status != Status::ok) return status;
  }
  // Prefetches the start of the child. The descent will wait for the first cache line, to check the
  // page's level; the other lines arrive meanwhile.
  prefetch_page_start(reinterpret_cast<const TreePage*>(header), is_leaf_next);
  return Status::ok;
}

}  // namespace

Status find_snapshot_border(WorkerContext& worker, SnapshotPointer root, uint64_t slice,
                            SnapshotBorder& border, const ScanAhead& ahead) {
  border = {};
  border.pointer = root;
  const PageHeader* header = nullptr;
  Status status = open_root(worker, root, ahead, header);
  while (status == Status::ok) {
    // Casts const away, because these functions also serve volatile pages and take non-const
    // pointers. Only the cache writes to this page (hints).
    TreePage* page = tree_page(const_cast<PageHeader*>(header));
    if (page->is_border()) {
      border.page = border_page(page);
      return Status::ok;
    }
    InteriorPage* interior = interior_page(page);
    border.place = {border.pointer, interior->find(slice, interior->header.version().count())};
    status = open_child(worker, interior, ahead, border, header);
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

Status next_snapshot_border(WorkerContext& worker, SnapshotPlace place, const ScanAhead& ahead,
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
  border.place = {place.parent, slot};
  status = open_child(worker, interior, ahead, border, header);
  if (status != Status::ok) return status;
  border.page = border_page(tree_page(const_cast<PageHeader*>(header)));
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
