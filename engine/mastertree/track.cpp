#include <cstring>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/restructure.h"
#include "engine/transaction/storage_ops.h"

namespace atolldb {

namespace {

/// Returns the child for the slice, or the successor of a page that is being replaced (R3). Returns
/// null if the child is in a snapshot only, or is not known at this moment.
TreePage* child_of(WorkerContext& worker, InteriorPage* page, PageVersion version, uint64_t slice) {
  const VolatilePointer word = page->children[page->find(slice, version.count())].load_acquire();
  if (word.is_frozen()) {
    // The word is loaded first, then the twins. A frozen word may be followed while there are none.
    const VolatilePointer twin = page->twin_for(slice);
    if (!twin.is_null()) return tree_page(worker.resolve(twin));
  }
  if (word.is_null()) return nullptr;
  TreePage* child = tree_page(worker.resolve(word.thawed()));
  return child->contains(slice) ? child : nullptr;
}

}  // namespace

/// Returns the border page that has the slice now. A packed page leads to its parent (R101).
BorderPage* current_page(WorkerContext& worker, TreePage* page, uint64_t slice,
                         PageVersion& version) {
  for (;;) {
    version = page->header.version();
    DCHECK(is_sound(page, version));
    if (!version.is_moved()) {
      if (page->is_border()) return border_page(page);
      page = child_of(worker, interior_page(page), version, slice);
      if (page == nullptr) return nullptr;
      continue;
    }
    if (version.is_dropped()) return nullptr;
    const VolatilePointer twin = page->twin_for(slice);
    if (!twin.is_null()) {
      page = tree_page(worker.resolve(twin));
    } else if (!fault::wait_in_verification) {
      return nullptr;
    }
    reach(SyncPoint::tracking);
  }
}

bool track_moved(WorkerContext& worker, RecordHead*& head, uint16_t& payload_at) {
  // Arrays have no twins: if a record of an array is moved, its page was dropped (R8).
  if (page_of(head)->type != PageType::mastertree_border) return false;
  auto* record = reinterpret_cast<TreeRecord*>(head);
  TreePage* page = tree_page(page_of(record));
  StorageControl& storage = worker.view().control->storage(page->header.storage_id);
  DCHECK(record->head.slot < border_page(page)->slot_capacity() &&
         record->head.remainder != kRemainderNextLayer);
  // Rebuilds the key from slice, remainder and suffix, which a move never changes.
  std::byte key_bytes[8 + kMaxTreeKeyBytes];
  put_slice(border_page(page)->slices()[record->head.slot], key_bytes);
  const uint32_t suffix_bytes = record->suffix_bytes();
  std::memcpy(key_bytes + 8, record->suffix(), suffix_bytes);
  const uint32_t length = record->head.remainder > 8 ? 8 + suffix_bytes : record->head.remainder;
  LayerKey key(Bytes(key_bytes, length));

  const bool may_wait = fault::wait_in_verification;
  const Adoption adoption = may_wait ? Adoption::yes : Adoption::no;
  PageVersion version;
  BorderPage* border = current_page(worker, page, key.slice, version);
  while (border != nullptr) {
    const SlotView slot = find_slot(worker, border, version, key, may_wait);
    if (slot.match == Match::record) {
      DCHECK(slot.record->head.remainder == key.remainder);
      head = &slot.record->head;
      payload_at = slot.record->payload_at();
      return true;
    }
    if (slot.match != Match::next_layer) return false;
    key = key.next();
    const Link link{slot.record->next_layer(), border};
    const BorderView view = find_border(worker, storage, link, key.slice, adoption);
    if (view.dropped) return false;
    border = view.page;
    version = view.version;
  }
  return false;
}

constinit const StorageOps kMastertreeOps = {track_moved, record_erased};

}  // namespace atolldb
