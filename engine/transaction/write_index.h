// Write index: maps a record's identity to its write-set entry, so that R14 (own writes are
// visible) needs no search.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "shared/base/check.h"

namespace atolldb {

/// Hash table with open addressing. Slots have stamps, so `clear` only increments the current
/// stamp. Once in 2^40 calls it also overwrites all slots. The part of the table in use grows with
/// the number of entries, so a small transaction uses few cache lines. Allocates nothing after
/// construction.
///
/// `kStampBits`: tests use fewer bits.
template <uint32_t kStampBits = 40>
class BasicWriteIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  /// `capacity`: maximum number of entries, less than 2^24.
  explicit BasicWriteIndex(uint32_t capacity)
      : slot_count_(std::bit_ceil(capacity * kSpread + kSmallest)),
        slots_(std::make_unique<uint64_t[]>(slot_count_)),
        identities_(std::make_unique_for_overwrite<uint64_t[]>(capacity)) {
    CHECK(capacity <= kEntryMask);
  }

  void clear() {
    mask_ = kSmallest - 1;
    begin_stamp();
  }

  /// Adds an entry. REQUIRES: `entry` is the number of entries added since the last clear.
  void insert(uint64_t identity, uint32_t entry) {
    DCHECK(entry < kEntryMask && mask_ < slot_count_);
    identities_[entry] = identity;
    if (entry * 2 >= mask_) {
      mask_ = mask_ * kSpread + kSpread - 1;
      DCHECK(mask_ < slot_count_ && (mask_ & (mask_ + 1)) == 0);
      begin_stamp();
      for (uint32_t i = 0; i < entry; ++i) place(identities_[i], i);
    }
    place(identity, entry);
  }

  /// Returns the first entry of this identity for which `matches(entry)` is true, or kNone.
  template <typename Matches>
  uint32_t find(uint64_t identity, Matches&& matches) const {
    for (uint32_t at = first(identity); is_taken(slots_[at]); at = (at + 1) & mask_) {
      const auto entry = static_cast<uint32_t>(slots_[at] & kEntryMask);
      if (identities_[entry] == identity && matches(entry)) return entry;
    }
    return kNone;
  }

 private:
  // Large enough that few of a transaction's roughly two dozen writes collide.
  static constexpr uint32_t kSmallest = 128;
  static constexpr uint32_t kSpread = 4;
  // Layout of a slot: [stamp 40][entry 24].
  static constexpr uint32_t kEntryBits = 24;
  static_assert(kStampBits + kEntryBits <= 64);
  static constexpr uint64_t kLastStamp = (uint64_t{1} << kStampBits) - 1;
  static constexpr uint32_t kEntryMask = (1u << kEntryBits) - 1;

  bool is_taken(uint64_t slot) const { return slot >> kEntryBits == stamp_; }
  /// Frees all slots by a new stamp: a slot with an older stamp is free.
  void begin_stamp() {
    if (++stamp_ <= kLastStamp) [[likely]]
      return;
    std::fill_n(slots_.get(), slot_count_, 0);  // once in 12 days at a million clears per second
    stamp_ = 1;
  }
  uint32_t first(uint64_t identity) const { return static_cast<uint32_t>(identity >> 20) & mask_; }
  void place(uint64_t identity, uint32_t entry) {
    uint32_t at = first(identity);
    while (is_taken(slots_[at])) at = (at + 1) & mask_;
    DCHECK(entry <= kEntryMask && stamp_ != 0);
    slots_[at] = stamp_ << kEntryBits | entry;
  }

  uint32_t mask_ = kSmallest - 1;
  uint64_t stamp_ = 1;  // never 0, because new slots have stamp 0
  uint64_t slot_count_;
  std::unique_ptr<uint64_t[]> slots_;
  std::unique_ptr<uint64_t[]> identities_;
};

using WriteIndex = BasicWriteIndex<>;

}  // namespace atolldb
