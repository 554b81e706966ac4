#include "engine/mastertree/track.h"

#include "engine/mastertree/descent.h"
#include "engine/transaction/optimistic_read.h"

namespace atolldb {

namespace {

/// The not moved border page that holds `slice` now, starting from `page` through twins; null when
/// it was dropped.
BorderPage* current_page(WorkerContext& worker, TreePage* page, uint64_t slice,
                         PageVersion& version) {
  for (uint32_t spin = 1;; ++spin) {
    version = page->header.version();
    if (!version.is_moved()) return border_page(page);
    if (version.is_dropped() || worker.cluster_failed()) return nullptr;
    const VolatilePointer twin = page->twin_for(slice);
    if (!twin.is_null()) {
      page = tree_page(worker.resolve(twin));
    } else {
      spin_pause();
      if (spin % 256 == 0) sched_yield();
    }
  }
}

}  // namespace

bool track_moved(WorkerContext& worker, RecordHead*& head, uint16_t& payload_at) {
  auto* record = reinterpret_cast<TreeRecord*>(head);
  TreePage* page = tree_page(page_of(record));
  StorageControl& storage = worker.view().control->storage(page->header.storage_id);
  // What identifies the record never changes, wherever it goes: slice, remainder, suffix.
  std::byte key_bytes[8 + kMaxTreeKeyBytes];
  put_slice(border_page(page)->slices()[record->slot], key_bytes);
  const uint32_t suffix_bytes = record->suffix_bytes();
  std::memcpy(key_bytes + 8, record->suffix(), suffix_bytes);
  const uint32_t length = record->remainder > 8 ? 8 + suffix_bytes : record->remainder;
  LayerKey key(Bytes(key_bytes, length));

  PageVersion version;
  BorderPage* border = current_page(worker, page, key.slice, version);
  while (border != nullptr) {
    const SlotView slot = find_slot(worker, border, version, key);
    if (slot.match == Match::record) {
      head = &slot.record->head;
      payload_at = slot.record->payload_at();
      return true;
    }
    if (slot.match != Match::next_layer) return false;
    key = key.next();
    const Link link{slot.record->next_layer(), border};
    const BorderView view = find_border(worker, storage, link, key.slice, Adoption::no);
    if (view.dropped) return false;
    border = view.page;
    version = view.version;
  }
  return false;
}

}  // namespace atolldb
