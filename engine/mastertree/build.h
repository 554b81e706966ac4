// Making new Master-tree pages, before anybody else can see them.
#pragma once

#include <cstdint>

#include "engine/mastertree/page.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// Range of slices [low, high), or [low, end].
struct SliceRange {
  uint64_t low = 0;
  uint64_t high = 0;
  bool high_is_end = true;

  bool contains(uint64_t slice) const { return slice >= low && (high_is_end || slice < high); }
};

inline SliceRange range_of(const TreePage& page) {
  return {page.low, page.high, page.high_is_end != 0};
}

/// Takes a page from the pool; the caller has reserved it (R23), so this cannot fail.
BorderPage* new_border(WorkerContext& worker, uint32_t storage_id, uint8_t layer,
                       const SliceRange& range, uint32_t slot_capacity, uint64_t floor);
InteriorPage* new_interior(WorkerContext& worker, uint32_t storage_id, uint8_t layer, uint8_t level,
                           const SliceRange& range, uint64_t floor);

/// Writes slot `count` of `page` but does not count it yet. `suffix`: the bytes behind the slice.
TreeRecord* write_slot(BorderPage* page, uint32_t count, uint64_t slice, uint16_t remainder,
                       const std::byte* suffix, uint32_t capacity, Vid vid);

/// Copies a record, without its lock and `moved`, to slot `count`, with at least `min_capacity`.
TreeRecord* copy_record(BorderPage* to, uint32_t count, uint64_t slice, TreeRecord* from,
                        uint32_t min_capacity);

/// Copies all records of a page whose slots ascend, as they lie: `to` has the same slot capacity
/// and no records yet. No next layers among them.
void copy_all_records(BorderPage* to, BorderPage* from, uint32_t count);

/// Bytes that copy_record will take from the heap.
uint32_t copied_bytes(const TreeRecord* record, uint32_t min_capacity);

/// Whether slots (slice, remainder) keep the page in ascending order.
bool extends_order(const BorderPage* page, PageVersion version, uint64_t slice, uint16_t remainder);

}  // namespace atolldb
