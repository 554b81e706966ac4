// Estimates how many misses of a cache a larger cache would have saved. It remembers names of
// evicted pages, without their content (ghosts). A miss of a page that was evicted lately is a miss
// that a larger cache would not have had.
#pragma once

#include <bit>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/memory/zeroed_array.h"

namespace atolldb {

/// Remembers a sample of the evicted pages, chosen by their names, so that its size is fixed. Not
/// thread-safe: the cache's lock guards it.
class GhostList {
 public:
  /// A larger cache has 1 / kMorePart more frames.
  static constexpr uint64_t kMorePart = 8;

  /// `most_frames`: the cache never has more frames.
  explicit GhostList(uint64_t most_frames) {
    while ((most_frames / kMorePart) >> shift_ > kSlots / kSlotsPerGhost) ++shift_;
    CHECK(shift_ < kSampleBits);
  }

  /// Records an eviction. `evictions`: their number so far.
  void add(SnapshotPointer page, uint64_t evictions) {
    const uint64_t mixed = mix(page);
    if (!is_sampled(mixed)) return;
    slots_[slot_of(mixed)] = {page.word(), evictions};
  }

  /// Returns how many misses like this one a larger cache would have saved: 0, or what one page of
  /// the sample stands for. `evictions`: their number so far; `frames`: frames that the cache has.
  uint64_t saved_by_more(SnapshotPointer page, uint64_t evictions, uint64_t frames) {
    const uint64_t mixed = mix(page);
    if (!is_sampled(mixed)) return 0;
    Slot& slot = slots_[slot_of(mixed)];
    if (slot.page != page.word()) return 0;
    DCHECK(slot.evictions <= evictions);
    const bool is_recent = evictions - slot.evictions < frames / kMorePart;
    slot = {};
    return is_recent ? uint64_t{1} << shift_ : 0;
  }

 private:
  struct Slot {
    uint64_t page;  // name; 0: none
    uint64_t evictions;
  };
  static constexpr uint64_t kSlots = 16'384;
  static constexpr uint64_t kSlotsPerGhost = 16;  // many, so that few ghosts replace each other
  static constexpr uint32_t kSampleBits = 24;

  static uint64_t mix(SnapshotPointer page) {
    DCHECK(page.word() != 0);
    return page.word() * 0x9e3779b97f4a7c15ull;
  }
  bool is_sampled(uint64_t mixed) const {
    return (mixed >> (64 - kSampleBits) & ((uint64_t{1} << shift_) - 1)) == 0;
  }
  static uint64_t slot_of(uint64_t mixed) { return mixed >> 16 & (kSlots - 1); }
  static_assert(std::has_single_bit(kSlots));

  uint32_t shift_ = 0;  // the sample has one page of 2^shift_
  ZeroedArray<Slot> slots_{kSlots};
};

}  // namespace atolldb
