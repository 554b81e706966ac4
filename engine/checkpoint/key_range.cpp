#include "engine/checkpoint/key_range.h"

#include <algorithm>

#include "engine/format/array_page.h"
#include "engine/format/tree_page.h"
#include "engine/transaction/storage_handle.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Fences are taken from the first level that has this many pages per range, so that the ranges
/// differ little in size.
constexpr size_t kFencesPerRange = 16;

std::vector<KeyRange> divide_array(const StorageControl& storage, uint32_t parts) {
  const ArrayShape shape(storage.record_count, storage.payload_bytes);
  // Ranges end where leaves end, so that each leaf is read once.
  const uint64_t leaves =
      (storage.record_count + shape.records_per_leaf - 1) / shape.records_per_leaf;
  const uint64_t per_part = (leaves + parts - 1) / parts * shape.records_per_leaf;
  std::vector<KeyRange> ranges;
  for (uint64_t part = 0; part < parts; ++part) {
    KeyRange range;
    range.first = std::min(part * per_part, storage.record_count);
    range.end = std::min(range.first + per_part, storage.record_count);
    ranges.push_back(std::move(range));
  }
  CHECK(ranges.back().end == storage.record_count);
  return ranges;
}

std::vector<KeyRange> divide_heap(uint32_t parts) {
  std::vector<KeyRange> ranges(parts);
  for (uint32_t part = 0; part < parts; ++part) {
    ranges[part].first = part;
    ranges[part].end = parts;
  }
  return ranges;
}

/// Appends the interior pages below `pages`, and their low fences. Pages that are being replaced
/// are omitted, which only makes the division coarser.
std::vector<InteriorPage*> descend_a_level(const ClusterView& view,
                                           const std::vector<InteriorPage*>& pages,
                                           std::vector<uint64_t>& fences) {
  std::vector<InteriorPage*> below;
  fences.clear();
  for (InteriorPage* page : pages) {
    const uint32_t count = std::min(page->header.version().count(), kInteriorCapacity);
    for (uint32_t i = 0; i < count; ++i) {
      fences.push_back(page->separators[i]);
      const VolatilePointer word = page->children[i].load_acquire();
      if (word.is_null()) continue;
      TreePage* child = tree_page(view.resolve(word.thawed()));
      if (!child->is_border()) below.push_back(interior_page(child));
    }
  }
  return below;
}

/// Returns fences of the first layer: ascending, each once.
std::vector<uint64_t> fences_of(WorkerContext& worker, const StorageControl& storage,
                                uint32_t parts) {
  std::vector<uint64_t> fences;
  const VolatilePointer root = storage.root.load_acquire();
  if (root.is_null()) return fences;
  TreePage* top = tree_page(worker.view().resolve(root.thawed()));
  std::vector<InteriorPage*> pages;
  if (!top->is_border()) pages.push_back(interior_page(top));
  while (!pages.empty() && fences.size() < parts * kFencesPerRange) {
    pages = descend_a_level(worker.view(), pages, fences);
  }
  std::ranges::sort(fences);
  const auto same = std::ranges::unique(fences);
  fences.erase(same.begin(), same.end());
  if (!fences.empty() && fences.front() == 0) fences.erase(fences.begin());
  return fences;
}

/// Returns the slices at which the ranges after the first one begin, ascending.
std::vector<uint64_t> bounds_of(WorkerContext& worker, const StorageControl& storage,
                                uint32_t parts) {
  std::vector<uint64_t> bounds;
  if (storage.type == StorageType::hash) {
    // Hashes are spread evenly.
    for (uint64_t part = 1; part < parts; ++part) bounds.push_back(UINT64_MAX / parts * part);
    return bounds;
  }
  const std::vector<uint64_t> fences = fences_of(worker, storage, parts);
  for (uint64_t part = 1; part < parts && !fences.empty(); ++part) {
    bounds.push_back(fences[std::min(fences.size() - 1, fences.size() * part / parts)]);
  }
  const auto same = std::ranges::unique(bounds);
  bounds.erase(same.begin(), same.end());
  return bounds;
}

std::vector<KeyRange> divide_tree(WorkerContext& worker, const StorageControl& storage,
                                  uint32_t parts) {
  const std::vector<uint64_t> bounds = bounds_of(worker, storage, parts);
  CHECK(bounds.size() < parts);
  std::vector<KeyRange> ranges(parts);
  for (size_t i = 0; i < bounds.size(); ++i) {
    ranges[i].high = smallest_key_of(bounds[i]);
    ranges[i + 1].low = *ranges[i].high;
  }
  // The ranges after the last bound are empty, except for the one that begins there.
  for (size_t i = bounds.size() + 1; i < parts; ++i) ranges[i].high = "";
  return ranges;
}

std::vector<KeyRange> divide(WorkerContext& worker, const StorageControl& storage, uint32_t parts) {
  DCHECK(worker.slot().begin_epoch.load(std::memory_order_relaxed) != kIdleEpoch);
  switch (storage.type) {
    case StorageType::array:
      return divide_array(storage, parts);
    case StorageType::sequential:
      return divide_heap(parts);
    case StorageType::mastertree:
    case StorageType::hash:
      return divide_tree(worker, storage, parts);
    case StorageType::none:
      break;
  }
  CHECK(false);
  return {};
}

}  // namespace

std::string smallest_key_of(uint64_t slice) {
  std::string key(sizeof slice, '\0');
  put_slice(slice, reinterpret_cast<std::byte*>(key.data()));
  // A key that ends earlier has zeros in the rest of its slice, and comes before longer ones.
  while (!key.empty() && key.back() == '\0') key.pop_back();
  DCHECK(slice_of(std::as_bytes(std::span(key))) == slice);
  return key;
}

std::vector<KeyRange> divide_storage(WorkerContext& worker, uint32_t storage_id, uint32_t parts) {
  CHECK(parts != 0 && storage_id != 0);
  const StorageControl& storage = worker.view().control->storage(storage_id);
  // While the worker has a begin epoch, the storage keeps its pages and its slot (R34).
  worker.enter();
  std::vector<KeyRange> ranges;
  if (is_storage_ready(storage, storage_id)) ranges = divide(worker, storage, parts);
  worker.leave();
  CHECK(ranges.empty() || ranges.size() == parts);
  return ranges;
}

}  // namespace atolldb
