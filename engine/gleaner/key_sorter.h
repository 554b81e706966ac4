// Sorts the keys of a mapper's bucket, or of a round of a merge, by radix sort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/gleaner/gleaned_record.h"

namespace atolldb {

/// Keys of one storage seldom differ in more than about 30 bits of their first 16 bytes. The sorter
/// gathers these bits into a word and appends the key's position. It sorts the words by counting
/// digits, then moves the keys to the positions of their words. It sorts keys with equal words by
/// comparison. It sorts all keys by comparison if the bits do not fit in the word, or if there are
/// few keys.
/// Thread: one.
class KeySorter {
 public:
  /// Allocates a sorter for up to `max_keys` keys at a time.
  explicit KeySorter(uint64_t max_keys);
  /// Returns the memory of a sorter in bytes.
  static constexpr uint64_t footprint(uint64_t max_keys) {
    return max_keys * (sizeof(SortKey) + 2 * sizeof(uint64_t));
  }

  /// Returns the keys in the order of operator<. The sort is stable. The keys lie in the sorter's
  /// memory, where they are valid until the next call, or in `keys`. REQUIRES: `keys` has at most
  /// max_keys keys.
  std::span<SortKey> sort(std::span<SortKey> keys);

 private:
  std::span<SortKey> put_in_place(std::span<const SortKey> keys, std::span<uint64_t> codes,
                                  uint32_t place_bits);

  uint64_t max_keys_;
  std::unique_ptr<SortKey[]> sorted_;
  std::unique_ptr<uint64_t[]> codes_;  // [ bits in which keys differ ][ place ]
  std::unique_ptr<uint64_t[]> spare_;
};

}  // namespace atolldb
