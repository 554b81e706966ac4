// Layout of Master-tree pages. Source: [FOEDUS15] section 8 and appendix D. Rules R3, R6, R7.
//
// Invariants:
//  - The range [low, high) of a page never changes.
//  - The slice, remainder and suffix of a slot never change once the slot is counted.
//  - Records never move inside a page.
//  - A dual pointer never changes its address during the life of its page.
//  - `moved` never reverts. The twins of a moved page, once set, never change.
//  - Equal slices are always on the same page.
//  - Guide i of a border page, if it exists, equals the slice of slot (i + 1) * kSearchStride, if
//    that slot is counted. This also holds for pages that do not ascend.
//  - The guide of an interior page does not change. Guide i equals separator (i + 1) *
//    kSearchStride, if that is one of the sorted ones.
//
// Border page                                   Interior page
//   0    PageHeader, range                        0    the same 128 bytes
//   64   lock, heap begin, twins, guide
//   128  slices   u64[slot_capacity]              128  guide      u64[kInteriorGuides]
//        offsets  u16[slot_capacity]                   separators u64[kInteriorCapacity]
//        ... free ...                                  children   DualPointer[kInteriorCapacity]
//        records, growing down from the end
//
// A look-up reads the first cache line: version, type, level, range, and the number of slots that
// locates the other arrays. It reads the second line only if the page has moved, or if the page has
// a guide that the look-up needs: an ascending border page with more than kSearchStride slots. An
// insert writes both: the version in the first, lock and heap begin in the second. Threads that
// wait for the page lock write the second line only, so most readers of the page do not notice.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/format/slot_search.h"
#include "engine/format/tree_record.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/memory/page_header.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

#ifdef ATOLL_STRESS
inline constexpr uint32_t kMaxBorderSlots = 5;
inline constexpr uint32_t kInteriorCapacity = 4;
inline constexpr uint32_t kInteriorTail = 1;
inline constexpr uint32_t kMinMergeRun = 2;
#else
inline constexpr uint32_t kMaxBorderSlots = 116;
inline constexpr uint32_t kInteriorCapacity = 160;
/// Maximum number of separators after the sorted ones. An adoption that would append one more
/// rebuilds the page instead.
inline constexpr uint32_t kInteriorTail = 12;
inline constexpr uint32_t kMinMergeRun = 4;
#endif
inline constexpr uint32_t kMinBorderSlots = 4;
/// Number of guides of a border page: as many as the second cache line has room for. A page with
/// more than kSearchStride * (kBorderGuides + 1) slots has strides without a guide.
inline constexpr uint32_t kBorderGuides = 4;
/// Maximum number of records with one slice: a key of each length from 0 to 8 bytes, and one longer
/// key or next layer. They share a page, even if it then has more than kMaxBorderSlots slots.
inline constexpr uint32_t kMaxSlotsOfOneSlice = 10;
/// Upper limit of the number of slots of any border page. It sizes arrays with an entry per slot.
inline constexpr uint32_t kBorderSlotBound = kMaxBorderSlots + kMaxSlotsOfOneSlice;

struct alignas(64) TreePage {
  PageHeader header;
  uint64_t low;   // smallest slice of the range
  uint64_t high;  // first slice after the range; 0: the range has no end
  // The second cache line.
  McsWord lock;         // only system transactions take page locks
  uint16_t heap_begin;  // border: offset of the lowest record byte; guarded by the page lock
  uint16_t spare;
  std::atomic<uint64_t> twins[2];  // VolatilePointer words; equal if there is one successor
  uint64_t twin_fence;             // twins[1] holds slices >= twin_fence; stored before the twins
  uint64_t border_guide[kBorderGuides];  // border: see BorderPage::set_slice

  bool high_is_end() const { return high == 0; }
  /// Returns the last slice of the range. Wraps around if the range has no end.
  uint64_t last() const { return high - 1; }
  bool contains(uint64_t slice) const { return low <= slice && slice <= last(); }
  bool same_range(const TreePage& other) const { return low == other.low && high == other.high; }
  /// REQUIRES: no other thread can find the page. `end` is not used if `has_no_end`.
  void set_range(uint64_t begin, uint64_t end, bool has_no_end) {
    DCHECK(has_no_end || begin < end);
    low = begin;
    high = has_no_end ? 0 : end;
  }
  /// Returns the successor of a moved page for this slice, or null until the mover has set the
  /// twins.
  VolatilePointer twin_for(uint64_t slice) const {
    // Acquire pairs with the release in set_twins: fence and twin pages are visible.
    const VolatilePointer left(twins[0].load(std::memory_order_acquire));
    if (left.is_null()) return left;
    const VolatilePointer right(twins[1].load(std::memory_order_acquire));
    return left == right || slice < twin_fence ? left : right;
  }
  void set_twins(VolatilePointer left, VolatilePointer right, uint64_t fence) {
    DCHECK(!left.is_null() && !right.is_null());
    DCHECK(left == right || (fence > low && contains(fence)));
    twin_fence = fence;
    twins[1].store(right.word(), std::memory_order_release);
    twins[0].store(left.word(), std::memory_order_release);
  }
  bool is_border() const { return header.level == 0; }
  VolatilePointer self() const { return header.volatile_self(); }
};
static_assert(sizeof(TreePage) == 128);
static_assert(offsetof(TreePage, high) + sizeof(uint64_t) == 64 && offsetof(TreePage, lock) == 64);

/// Bytes per slot of a border page: slice and offset.
inline constexpr uint32_t kSlotBytes = sizeof(uint64_t) + sizeof(uint16_t);
/// Bytes for slots and records together. The slot arrays may need 7 bytes of padding.
inline constexpr uint32_t kBorderUsableBytes = kPageBytes - sizeof(TreePage) - 8;

struct BorderPage : TreePage {
  /// Number of slots for which the slot arrays have room. Never changes.
  uint32_t slot_capacity() const { return header.slots; }
  /// REQUIRES: no other thread can find the page.
  void set_slot_capacity(uint32_t slots) {
    static_assert(kBorderSlotBound <= UINT8_MAX);
    CHECK(slots <= kBorderSlotBound);
    header.slots = static_cast<uint8_t>(slots);
  }
  uint64_t* slices() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* slices() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  uint16_t* offsets() { return reinterpret_cast<uint16_t*>(slices() + slot_capacity()); }
  const uint16_t* offsets() const {
    return reinterpret_cast<const uint16_t*>(slices() + slot_capacity());
  }
  /// Writes the slice of a slot, and its guide. REQUIRES: the slot is not counted yet, and the
  /// caller holds the page lock, or no other thread can find the page. A reader that counts the
  /// slot has loaded the version with acquire, after the release store that counts it. So it sees
  /// the guide, as it sees the slice. Once the slot is counted, neither changes.
  void set_slice(uint32_t slot, uint64_t slice) {
    slices()[slot] = slice;
    const uint32_t stride = slot / kSearchStride;
    if (slot % kSearchStride == 0 && stride != 0 && stride <= kBorderGuides) {
      border_guide[stride - 1] = slice;
    }
  }
  /// Returns whether the guide agrees with the first `count` slices.
  bool has_guide(uint32_t count) const {
    for (uint32_t i = 0; i < kBorderGuides && (i + 1) * kSearchStride < count; ++i) {
      if (border_guide[i] != slices()[(i + 1) * kSearchStride]) return false;
    }
    return true;
  }
  /// Returns how many of the first `count` slices are <= `bound`. REQUIRES: a version counts these
  /// slots and is ascending.
  uint32_t count_at_or_below(uint64_t bound, uint32_t count) const {
    return atolldb::count_at_or_below<kBorderGuides>(slices(), border_guide, count, bound);
  }
  /// Returns the first slot with a slice >= the wanted one, or `count`. REQUIRES: as above.
  uint32_t find_lower_bound(uint64_t slice, uint32_t count) const {
    return slice == 0 ? 0 : count_at_or_below(slice - 1, count);
  }
  TreeRecord* record(uint32_t slot) {
    return reinterpret_cast<TreeRecord*>(reinterpret_cast<std::byte*>(this) + offsets()[slot]);
  }

  /// Offset of the first byte after the slot arrays.
  static constexpr uint32_t heap_limit(uint32_t slot_capacity) {
    return (static_cast<uint32_t>(sizeof(TreePage)) + slot_capacity * kSlotBytes + 7) & ~7u;
  }
  uint32_t free_bytes() const {
    DCHECK(heap_begin >= heap_limit(slot_capacity()) && heap_begin <= kPageBytes);
    return heap_begin - heap_limit(slot_capacity());
  }
  bool has_room(uint32_t count, uint32_t record_bytes) const {
    DCHECK(count <= slot_capacity());
    return count < slot_capacity() && free_bytes() >= record_bytes;
  }
  /// Returns the number of slots that balances slot arrays and record heap for records of
  /// `record_bytes` on average.
  static constexpr uint32_t capacity_for(uint32_t record_bytes) {
    const uint32_t fitting = kBorderUsableBytes / (record_bytes + kSlotBytes);
    return std::clamp(fitting, std::min(kMinBorderSlots, kMaxBorderSlots), kMaxBorderSlots);
  }
  /// Returns the number of slots of a new page for `count` records of `bytes` together: free room
  /// gets slots for more records like them. REQUIRES: the records and their slots fit.
  static constexpr uint32_t capacity_with(uint32_t count, uint32_t bytes) {
    DCHECK(bytes + count * kSlotBytes <= kBorderUsableBytes);
    const uint32_t typical = count == 0 ? TreeRecord::bytes_with(8, 8) : bytes / count;
    const uint32_t fitting = (kBorderUsableBytes - bytes) / kSlotBytes;
    return std::max(count, std::min(capacity_for(typical), fitting));
  }
};

/// Number of guides: one for each stride of separators except the first. Fills whole cache lines.
inline constexpr uint32_t kInteriorGuides = 16;
static_assert(kInteriorCapacity <= kSearchStride * (kInteriorGuides + 1));

struct InteriorPage : TreePage {
  uint64_t guide[kInteriorGuides];         // guide[i]: first separator of stride i + 1
  uint64_t separators[kInteriorCapacity];  // separators[i] = low fence of child i
  DualPointer children[kInteriorCapacity];

  /// Number of leading children whose separators ascend. Never changes.
  uint32_t sorted_count() const { return header.slots; }
  /// Returns the slot of the child whose range has the largest start that is at most `slice`.
  /// Searches the first `count` slots.
  uint32_t find(uint64_t slice, uint32_t count) const {
    const uint32_t sorted = std::min(sorted_count(), count);
    // `below` is 0 only if the page does not cover the slice. A descent checks the fences, and
    // leaves such a page.
    const uint32_t below = count_at_or_below(slice, sorted);
    uint32_t best = below - (below != 0 ? 1 : 0);
    uint64_t best_begin = separators[best];
    // The loop has no branch, because the order of the tail cannot be predicted.
    for (uint32_t i = sorted; i < count; ++i) {
      const uint64_t begin = separators[i] & -static_cast<uint64_t>(separators[i] <= slice);
      best = begin > best_begin ? i : best;
      best_begin = std::max(best_begin, begin);
    }
    return best;
  }
  /// Returns how many of the first `sorted` separators are <= `slice`. REQUIRES: they ascend.
  uint32_t count_at_or_below(uint64_t slice, uint32_t sorted) const {
    return atolldb::count_at_or_below<kInteriorGuides>(separators, guide, sorted, slice);
  }
  /// Returns the start of the stride of sorted separators that `find` reads for `slice`.
  const uint64_t* stride_for(uint64_t slice) const {
    return separators + stride_begin<kInteriorGuides>(separators, guide, sorted_count(), slice);
  }
  /// Returns whether the guide agrees with the sorted separators.
  bool has_guide() const {
    for (uint32_t i = kSearchStride; i < sorted_count(); i += kSearchStride) {
      if (guide[i / kSearchStride - 1] != separators[i]) return false;
    }
    return true;
  }
  /// Sets the sorted count and the guide. REQUIRES: the page is not published yet, and its first
  /// `count` separators ascend.
  void set_sorted(uint32_t count) {
    DCHECK(count <= kInteriorCapacity);
    static_assert(kInteriorCapacity <= UINT8_MAX);
    header.slots = static_cast<uint8_t>(count);
    for (uint32_t i = kSearchStride; i < count; i += kSearchStride) {
      guide[i / kSearchStride - 1] = separators[i];
    }
  }
};
static_assert(sizeof(InteriorPage) <= kPageBytes);

/// Freezes the pointer's volatile word (R3): a thread that loads the word from now on detects that
/// its page is being replaced. Returns the word as it is to be copied; a null word keeps its drop
/// count. REQUIRES: the page lock is held.
inline VolatilePointer freeze(DualPointer& pointer) {
  const uint64_t bit = fault::copy_without_freezing ? 0 : VolatilePointer::kFrozenBit;
  const uint64_t word = pointer.volatile_word.load(std::memory_order_acquire);
  if (!VolatilePointer(word).is_null()) {
    // Only the holder of the page lock changes such a word. A replaced parent has a hundred of
    // them, and a locked instruction for each would take longer than the copy.
    pointer.volatile_word.store(word | bit, std::memory_order_release);
    return VolatilePointer(word).thawed();
  }
  // Workers install pages in null words without the lock.
  return VolatilePointer(pointer.volatile_word.fetch_or(bit, std::memory_order_acq_rel)).thawed();
}

/// Returns the newest removed version of the page (R43). Its successors inherit it.
inline uint64_t max_removed_vid_of(const TreePage& page) {
  return fault::max_removed_vid_forgets_predecessor
             ? 0
             : page.header.max_removed_vid.load(std::memory_order_relaxed);
}

inline TreePage* tree_page(PageHeader* header) { return reinterpret_cast<TreePage*>(header); }
inline BorderPage* border_page(TreePage* page) { return static_cast<BorderPage*>(page); }
inline InteriorPage* interior_page(TreePage* page) { return static_cast<InteriorPage*>(page); }

}  // namespace atolldb
