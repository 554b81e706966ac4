// Builds Master-tree pages that no other thread can reach yet.
#pragma once

#include <cstdint>
#include <span>

#include "engine/format/tree_page.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// Range of slices [low, high). If `high_is_end`, the range has no end, and `high` is not used.
struct SliceRange {
  uint64_t low = 0;
  uint64_t high = 0;
  bool high_is_end = true;

  bool contains(uint64_t slice) const { return slice >= low && (high_is_end || slice < high); }
};

inline SliceRange range_of(const TreePage& page) {
  return {page.low, page.high, page.high_is_end()};
}

/// The tree that a page belongs to.
struct TreeName {
  uint32_t storage_id;
  bool is_delta;  // the storage's delta tree (R76)
};

inline TreeName tree_of(const TreePage& page) {
  return {page.header.storage_id, page.header.is_delta != 0};
}

/// Return a new page without slots. REQUIRES: the caller has reserved the page, so that the pool
/// has one (R23).
BorderPage* new_border(WorkerContext& worker, TreeName tree, uint8_t layer, const SliceRange& range,
                       uint32_t slot_capacity, uint64_t max_removed_vid);
InteriorPage* new_interior(WorkerContext& worker, TreeName tree, uint8_t layer, uint8_t level,
                           const SliceRange& range, uint64_t max_removed_vid);

/// A record that is to be copied to a new page, and its slice.
struct SlotSource {
  uint64_t slice;
  TreeRecord* record;
};
/// Returns whether slot `a` comes before slot `b` in key order.
bool precedes(const SlotSource& a, const SlotSource& b);

/// What a new border page is for.
struct BorderName {
  TreeName tree;
  uint8_t layer;
  SliceRange range;
};
/// Returns a new page with copies of these records, as copy_record makes them. Its slots are
/// balanced for records of their average size. REQUIRES: the records are locked, lead to no next
/// layer, are in key order, and fit in one page; the caller has reserved the page (R23). If
/// `promised_bytes` is not 0, the page keeps room for one more record of that many bytes, which
/// also fits.
BorderPage* new_border_with(WorkerContext& worker, const BorderName& name,
                            std::span<const SlotSource> records, uint64_t max_removed_vid,
                            uint32_t promised_bytes = 0);

/// Writes slot `count` of `page`. Readers do not see the slot until the caller changes the page
/// word. `suffix`: the key bytes after the slice.
TreeRecord* write_slot(BorderPage* page, uint32_t count, uint64_t slice, uint16_t remainder,
                       const std::byte* suffix, uint32_t capacity, Vid vid);

/// Copies a record to slot `count`, without its lock and its flag kMoved. The capacity of the copy
/// is at least `min_capacity`.
TreeRecord* copy_record(BorderPage* to, uint32_t count, uint64_t slice, TreeRecord* from,
                        uint32_t min_capacity);

/// Copies the only record of the layer root `layer` to slot `count` of the page above (R70), where
/// its key begins with `slice`. Returns the copy, which has no lock and no flag kMoved.
TreeRecord* raise_record(BorderPage* to, uint32_t count, uint64_t slice, BorderPage* layer);

/// Returns the number of bytes that raise_record takes from the record heap of the page.
uint32_t raised_bytes(const TreeRecord* record);

/// Copies all records and slots at unchanged offsets. REQUIRES: the slots of `from` ascend and hold
/// no next layer; `to` has the same slot capacity and no records.
void copy_all_records(BorderPage* to, BorderPage* from, uint32_t count);

/// Returns the number of bytes that copy_record takes from the record heap of the page.
uint32_t copied_bytes(const TreeRecord* record, uint32_t min_capacity);

/// Returns whether the page's slots are still in key order if a slot (slice, remainder) is
/// appended.
bool extends_order(const BorderPage* page, PageVersion version, uint64_t slice, uint16_t remainder);

}  // namespace atolldb
