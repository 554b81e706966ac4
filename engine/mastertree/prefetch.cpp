#include "engine/mastertree/prefetch.h"

#include <algorithm>
#include <array>

#include "engine/mastertree/slot_search.h"

namespace atolldb {

namespace {

constexpr size_t kBatch = 16;  // keys in flight: with their lines, what a core can have under way
constexpr uint32_t kMaxHops = 16;

/// The border page for `slice`, without touching it if it is not the root.
BorderPage* find_page(WorkerContext& worker, StorageControl& storage, uint64_t slice) {
  const PageMemo::Entry* known = worker.memo().find(&storage.root, slice);
  if (known != nullptr && known->range.is_known()) return border_page(tree_page(known->page));
  const VolatilePointer root = storage.root.load_acquire();
  if (root.is_null()) return nullptr;
  TreePage* page = tree_page(worker.view().resolve(root.thawed()));
  bool is_border = page->is_border();
  for (uint32_t hops = 0; !is_border; ++hops) {
    const InteriorPage* interior = interior_page(page);
    const PageVersion version = page->header.version();
    // The words of a moved page are not kept up: they may lead to pages that were recycled (R9).
    if (version.is_moved() || hops == kMaxHops) return nullptr;
    is_border = page->header.level == 1;
    const VolatilePointer word =
        interior->children[interior->find(slice, version.count())].load_acquire();
    page = tree_page(worker.view().resolve(word.thawed()));
  }
  worker.memo().remember(&storage.root, slice, &page->header, {});
  return border_page(page);
}

void prefetch_slots(const BorderPage* page, uint64_t slice, uint32_t records,
                    uint32_t record_bytes) {
  const PageVersion version = page->header.version();
  const uint32_t count = version.count();
  const uint32_t first = version.is_ascending() ? find_lower_bound(page->slices(), count, slice)
                                                : find_equal(page->slices(), 0, count, slice);
  const uint32_t end = std::min(count, first + records);
  const auto* start = reinterpret_cast<const std::byte*>(page);
  for (uint32_t slot = first; slot < end; ++slot) {
    const std::byte* record = start + page->offsets()[slot];
    for (uint32_t at = 0; at < record_bytes; at += 64) __builtin_prefetch(record + at);
    __builtin_prefetch(record + record_bytes - 1);
  }
}

}  // namespace

void prefetch_records(WorkerContext& worker, StorageControl& storage, std::span<const Bytes> keys,
                      uint32_t records) {
  const uint32_t record_bytes = TreeRecord::bytes_for(8, align8(storage.payload_bytes));
  std::array<BorderPage*, kBatch> pages;
  for (; !keys.empty(); keys = keys.subspan(std::min(kBatch, keys.size()))) {
    const size_t count = std::min(kBatch, keys.size());
    for (size_t i = 0; i < count; ++i) {
      pages[i] = find_page(worker, storage, slice_of(keys[i]));
      if (pages[i] != nullptr) prefetch_page_start(pages[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      if (pages[i] == nullptr || records == 0) continue;
      prefetch_slots(pages[i], slice_of(keys[i]), records, record_bytes);
    }
  }
}

}  // namespace atolldb
