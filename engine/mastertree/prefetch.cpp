#include "engine/mastertree/prefetch.h"

#include <algorithm>
#include <array>

#include "engine/mastertree/slot_search.h"

namespace atolldb {

namespace {

constexpr size_t kBatch = 16;  // keys in flight: with their lines, what a core can have under way
constexpr uint32_t kMaxHops = 16;

BorderPage* find_page(WorkerContext& worker, StorageControl& storage, uint64_t slice) {
  VolatilePointer word = storage.root.load_acquire();
  for (uint32_t hops = 0; hops < kMaxHops && !word.is_null(); ++hops) {
    TreePage* page = tree_page(worker.view().resolve(word.thawed()));
    if (page->is_border()) {
      worker.memo().remember(&storage.root, slice, &page->header);
      return border_page(page);
    }
    const InteriorPage* interior = interior_page(page);
    const PageVersion version = page->header.version();
    // The words of a moved page are not kept up: they may lead to pages that were recycled (R9).
    if (version.is_moved()) return nullptr;
    word = interior->children[interior->find(slice, version.count())].load_acquire();
  }
  return nullptr;
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
      if (pages[i] != nullptr) prefetch_slots(pages[i], slice_of(keys[i]), records, record_bytes);
    }
  }
}

}  // namespace atolldb
