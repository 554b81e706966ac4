// From a record's identity to its write-set entry: R14 without a search.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

namespace atolldb {

/// Open addressing over stamps: `clear` is one addition. The part in use grows with the number of
/// entries, so that a small transaction stays in few cache lines. Allocates nothing after
/// construction.
class WriteIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  explicit WriteIndex(uint32_t capacity)
      : slots_(std::make_unique<Slot[]>(std::bit_ceil(capacity * kSpread + kSmallest))),
        identities_(std::make_unique_for_overwrite<uint64_t[]>(capacity)) {}

  void clear() {
    mask_ = kSmallest - 1;
    ++stamp_;
  }

  /// `entry`: 0, 1, 2 ... since the last clear.
  void insert(uint64_t identity, uint32_t entry) {
    identities_[entry] = identity;
    if (entry * 2 >= mask_) {
      mask_ = mask_ * kSpread + kSpread - 1;
      ++stamp_;
      for (uint32_t i = 0; i < entry; ++i) place(identities_[i], i);
    }
    place(identity, entry);
  }

  /// The first entry of this identity for which `matches(entry)`, or kNone.
  template <typename Matches>
  uint32_t find(uint64_t identity, Matches&& matches) const {
    for (uint32_t at = first(identity); slots_[at].stamp == stamp_; at = (at + 1) & mask_) {
      const uint32_t entry = slots_[at].entry;
      if (identities_[entry] == identity && matches(entry)) return entry;
    }
    return kNone;
  }

 private:
  static constexpr uint32_t kSmallest = 64;
  static constexpr uint32_t kSpread = 4;
  struct Slot {
    uint64_t stamp = 0;
    uint32_t entry = 0;
  };
  uint32_t first(uint64_t identity) const { return static_cast<uint32_t>(identity >> 20) & mask_; }
  void place(uint64_t identity, uint32_t entry) {
    uint32_t at = first(identity);
    while (slots_[at].stamp == stamp_) at = (at + 1) & mask_;
    slots_[at] = {stamp_, entry};
  }

  uint32_t mask_ = kSmallest - 1;
  uint64_t stamp_ = 1;  // 64 bits: never wraps
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<uint64_t[]> identities_;
};

}  // namespace atolldb
