// Sorts the keys of a mapper's bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/gleaner/gleaned_record.h"

namespace atolldb {

/// Keys of one storage seldom differ in more than some 30 bits. Those are gathered into a word,
/// with the key's place behind them; words are sorted by counting digits, and the keys put where
/// their words are. Keys that do not fit, and few of them, are sorted by comparing. One thread's.
class KeySorter {
 public:
  /// For up to `max_keys` at a time.
  explicit KeySorter(uint64_t max_keys);
  /// Memory of a sorter.
  static constexpr uint64_t footprint(uint64_t max_keys) {
    return max_keys * (sizeof(SortKey) + 2 * sizeof(uint64_t));
  }

  /// The keys in the order of operator<: in the sorter's memory, until the next call, or in `keys`.
  /// REQUIRES: no more than max_keys.
  std::span<SortKey> sort(std::span<SortKey> keys);

 private:
  std::span<SortKey> put_in_place(std::span<const SortKey> keys, std::span<const uint64_t> codes,
                                  uint32_t place_bits);

  uint64_t max_keys_;
  std::unique_ptr<SortKey[]> sorted_;
  std::unique_ptr<uint64_t[]> codes_;  // [ bits in which keys differ ][ place ]
  std::unique_ptr<uint64_t[]> spare_;
};

}  // namespace atolldb
