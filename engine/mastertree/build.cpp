#include "engine/mastertree/build.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/format/tree_key.h"
#include "engine/mastertree/prefetch.h"
#include "shared/base/check.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

namespace {
TreePage* new_page(WorkerContext& worker, TreeName tree, PageType type, uint8_t layer,
                   uint8_t level, const SliceRange& range, uint64_t max_removed_vid) {
  PageHeader* header = worker.pages().take();
  CHECK(header != nullptr);
  DCHECK(range.high_is_end || range.low < range.high);
  DCHECK((level == 0) == (type == PageType::mastertree_border));
  std::memset(reinterpret_cast<std::byte*>(header) + sizeof(PageHeader), 0,
              sizeof(TreePage) - sizeof(PageHeader));
  TreePage* page = tree_page(header);
  header->storage_id = tree.storage_id;
  header->is_delta = tree.is_delta ? 1 : 0;
  header->type = type;
  header->layer = layer;
  header->level = level;
  header->max_removed_vid.store(max_removed_vid, std::memory_order_relaxed);
  header->version_word.store(PageVersion::make(0, 0, PageVersion::kAscending).word(),
                             std::memory_order_relaxed);
  page->set_range(range.low, range.high, range.high_is_end);
  return page;
}
}  // namespace

BorderPage* new_border(WorkerContext& worker, TreeName tree, uint8_t layer, const SliceRange& range,
                       uint32_t slot_capacity, uint64_t max_removed_vid) {
  TreePage* page =
      new_page(worker, tree, PageType::mastertree_border, layer, 0, range, max_removed_vid);
  DCHECK(BorderPage::heap_limit(slot_capacity) <= kPageBytes);
  border_page(page)->set_slot_capacity(slot_capacity);
  page->heap_begin = static_cast<uint16_t>(kPageBytes);
  return border_page(page);
}

InteriorPage* new_interior(WorkerContext& worker, TreeName tree, uint8_t layer, uint8_t level,
                           const SliceRange& range, uint64_t max_removed_vid) {
  return interior_page(
      new_page(worker, tree, PageType::mastertree_interior, layer, level, range, max_removed_vid));
}

namespace {

constexpr uint32_t kWriteAhead = 512;  // bytes from a new record down to the prefetch

}  // namespace

TreeRecord* write_slot(BorderPage* page, uint32_t count, uint64_t slice, uint16_t remainder,
                       const std::byte* suffix, uint32_t capacity, Vid vid) {
  const uint32_t bytes = TreeRecord::bytes_for(remainder, capacity);
  CHECK(page->has_room(count, bytes));
  DCHECK(page->contains(slice) && bytes % 8 == 0);
  DCHECK(!vid.is_moved() && !vid.is_being_written());
  const auto heap_begin = static_cast<uint16_t>(page->heap_begin - bytes);
  page->heap_begin = heap_begin;
  page->set_slice(count, slice);
  page->offsets()[count] = heap_begin;
  auto* record = reinterpret_cast<TreeRecord*>(reinterpret_cast<std::byte*>(page) + heap_begin);
  record->head.lock.clear();
  record->head.vid.store(vid.word(), std::memory_order_relaxed);
  record->head.slot = static_cast<uint16_t>(count);
  record->head.remainder = remainder;
  record->capacity = static_cast<uint16_t>(capacity);
  record->payload_bytes.store(0, std::memory_order_relaxed);
  const uint32_t suffix_bytes = TreeRecord::suffix_bytes_for(remainder);
  if (suffix_bytes != 0) std::memcpy(record->suffix(), suffix, suffix_bytes);
  // Loads the memory of later records, as WorkerLog::allocate does. The next locked instruction of
  // this worker waits for all its stores, so also for the lines of new records. Near the begin of
  // the page the lines are slots or precede the page, which is harmless.
  std::byte* const ahead = reinterpret_cast<std::byte*>(record) - kWriteAhead;
  for (uint32_t line = 0; line < bytes; line += 64) __builtin_prefetch(ahead + line, 1);
  return record;
}

uint32_t copied_bytes(const TreeRecord* record, uint32_t min_capacity) {
  const Vid vid(record->head.vid.load(std::memory_order_relaxed));
  if (vid.is_next_layer()) {
    return TreeRecord::bytes_for(kRemainderNextLayer, sizeof(DualPointer));
  }
  return TreeRecord::bytes_for(record->head.remainder,
                               std::max<uint32_t>(record->capacity, min_capacity));
}

TreeRecord* copy_record(BorderPage* to, uint32_t count, uint64_t slice, TreeRecord* from,
                        uint32_t min_capacity) {
  const Vid vid(from->head.vid.load(std::memory_order_relaxed) & ~Vid::kMoved);
  if (vid.is_next_layer()) {
    TreeRecord* record =
        write_slot(to, count, slice, kRemainderNextLayer, nullptr, sizeof(DualPointer), vid);
    // Copies the frozen word of `from` without the frozen bit (R3).
    DCHECK(from->next_layer()->load_acquire().is_frozen());
    record->next_layer()->volatile_word.store(from->next_layer()->load_acquire().thawed().word(),
                                              std::memory_order_relaxed);
    record->next_layer()->snapshot_word.store(
        from->next_layer()->snapshot_word.load(std::memory_order_relaxed),
        std::memory_order_relaxed);
    return record;
  }
  const uint32_t capacity = std::max<uint32_t>(from->capacity, min_capacity);
  TreeRecord* record =
      write_slot(to, count, slice, from->head.remainder, from->suffix(), capacity, vid);
  const uint16_t payload_bytes = from->payload_bytes.load(std::memory_order_relaxed);
  DCHECK(payload_bytes <= capacity);
  record->payload_bytes.store(payload_bytes, std::memory_order_relaxed);
  std::memcpy(record->payload(), from->payload(), payload_bytes);
  return record;
}

bool precedes(const SlotSource& a, const SlotSource& b) {
  if (a.slice != b.slice) return a.slice < b.slice;
  return length_class(a.record->head.remainder) < length_class(b.record->head.remainder);
}

BorderPage* new_border_with(WorkerContext& worker, const BorderName& name,
                            std::span<const SlotSource> records, uint64_t max_removed_vid,
                            uint32_t promised_bytes) {
  const auto count = static_cast<uint32_t>(records.size());
  const uint32_t promised = promised_bytes != 0 ? 1 : 0;  // records
  uint32_t bytes = promised_bytes;
  for (const SlotSource& source : records) bytes += copied_bytes(source.record, 0);
  CHECK(bytes + (count + promised) * kSlotBytes <= kBorderUsableBytes);
  BorderPage* page =
      new_border(worker, name.tree, name.layer, name.range,
                 BorderPage::capacity_with(count + promised, bytes), max_removed_vid);
  // The lines of a recycled page are rarely in the caches. So all of them are loaded at once.
  const auto* start = reinterpret_cast<const std::byte*>(page);
  for (uint32_t at = 0; at < kPageBytes; at += kLineBytes) __builtin_prefetch(start + at, 1);
  for (uint32_t i = 0; i < count; ++i) {
    DCHECK(i == 0 || precedes(records[i - 1], records[i]));
    DCHECK(!Vid(records[i].record->head.vid.load(std::memory_order_relaxed)).is_next_layer());
    copy_record(page, i, records[i].slice, records[i].record, 0);
  }
  page->header.set_version(PageVersion::make(0, count, PageVersion::kAscending));
  return page;
}

uint32_t raised_bytes(const TreeRecord* record) {
  const uint32_t remainder = 8u + record->head.remainder;
  return TreeRecord::bytes_for(remainder, TreeRecord::capacity_for(remainder, record->capacity));
}

TreeRecord* raise_record(BorderPage* to, uint32_t count, uint64_t slice, BorderPage* layer) {
  TreeRecord* from = layer->record(0);
  const Vid vid(from->head.vid.load(std::memory_order_relaxed) & ~Vid::kMoved);
  DCHECK(!vid.is_next_layer() && !vid.is_deleted());
  DCHECK(to->header.layer + 1 == layer->header.layer);
  // A next layer has no record with remainder 0, because such a key ends in the page above.
  DCHECK(from->head.remainder != 0 && from->head.remainder + 8u <= kMaxTreeKeyBytes);
  std::array<std::byte, kMaxTreeKeyBytes> suffix;
  put_slice(layer->slices()[0], suffix.data());
  std::memcpy(suffix.data() + 8, from->suffix(), from->suffix_bytes());
  const auto remainder = static_cast<uint16_t>(8 + from->head.remainder);
  const uint32_t capacity = TreeRecord::capacity_for(remainder, from->capacity);
  TreeRecord* record = write_slot(to, count, slice, remainder, suffix.data(), capacity, vid);
  const uint16_t payload_bytes = from->payload_bytes.load(std::memory_order_relaxed);
  DCHECK(payload_bytes <= capacity);
  record->payload_bytes.store(payload_bytes, std::memory_order_relaxed);
  std::memcpy(record->payload(), from->payload(), payload_bytes);
  return record;
}

void copy_all_records(BorderPage* to, BorderPage* from, uint32_t count) {
  DCHECK(to->slot_capacity() == from->slot_capacity());
  DCHECK(count <= from->slot_capacity() && to->heap_begin == kPageBytes);
  to->heap_begin = from->heap_begin;
  std::ranges::copy(from->border_guide, to->border_guide);
  std::memcpy(to->slices(), from->slices(), count * sizeof(uint64_t));
  std::memcpy(to->offsets(), from->offsets(), count * sizeof(uint16_t));
  // Lock words may change during the copy, because other threads queue for the locks. They are
  // cleared below.
  racy_read(reinterpret_cast<std::byte*>(to) + from->heap_begin,
            reinterpret_cast<const std::byte*>(from) + from->heap_begin,
            kPageBytes - from->heap_begin);
  for (uint32_t slot = 0; slot < count; ++slot) {
    to->record(slot)->head.lock.clear();
  }
}

bool extends_order(const BorderPage* page, PageVersion version, uint64_t slice,
                   uint16_t remainder) {
  const uint32_t count = version.count();
  if (count == 0) return true;
  if (!version.is_ascending()) return false;
  const uint64_t last = page->slices()[count - 1];
  if (last != slice) return last < slice;
  const TreeRecord* record = const_cast<BorderPage*>(page)->record(count - 1);
  return length_class(record->head.remainder) < length_class(remainder);
}

}  // namespace atolldb
