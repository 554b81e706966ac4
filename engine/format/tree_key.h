// Keys as 64-bit slices, one per layer. Source: [MASSTREE12]; [FOEDUS15] section 8.1.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/format/tree_record.h"
#include "shared/base/check.h"

namespace atolldb {

using Bytes = std::span<const std::byte>;

inline constexpr uint32_t kMaxTreeKeyBytes = 1024;

/// Returns the first 8 bytes of `rest` as a big-endian integer, padded with zeros. The order of
/// slices is that of their bytes.
inline uint64_t slice_of(Bytes rest) {
  uint64_t slice = 0;
  if (rest.size() >= 8) {
    std::memcpy(&slice, rest.data(), 8);
  } else if (!rest.empty()) {
    std::memcpy(&slice, rest.data(), rest.size());
  }
  return __builtin_bswap64(slice);
}

/// Returns a number below, equal to or above 0 if `left` comes before, equals or comes after
/// `right`. Keys are ordered by their bytes, and a prefix comes before its extensions.
inline int compare_keys(Bytes left, Bytes right) {
  const size_t common = std::min(left.size(), right.size());
  const int order = common == 0 ? 0 : std::memcmp(left.data(), right.data(), common);
  if (order != 0) return order;
  return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
}

inline void put_slice(uint64_t slice, std::byte* to) {
  slice = __builtin_bswap64(slice);
  std::memcpy(to, &slice, 8);
}

/// Returns the fence between neighbours `left` < `right`: the value in (left, right] with the most
/// zero bits at its end. Ranges then end where common prefixes of keys end. So appends after one
/// prefix do not disturb readers that start at the next prefix. Source: shortest separators of
/// prefix B-trees, Bayer and Unterauer 1977.
inline uint64_t fence_between(uint64_t left, uint64_t right) {
  DCHECK(left < right);
  const int differing = 63 - std::countl_zero(left ^ right);
  return right & (~uint64_t{0} << differing);
}

/// The rest of a key at one layer.
struct LayerKey {
  explicit LayerKey(Bytes rest_of_key)
      : rest(rest_of_key),
        slice(slice_of(rest_of_key)),
        remainder(static_cast<uint16_t>(rest_of_key.size())) {}

  /// Returns the key bytes after the slice; empty if the key ends in this layer.
  Bytes suffix() const { return remainder > 8 ? rest.subspan(8) : Bytes(); }
  /// REQUIRES: the key has at least 8 bytes left at this layer.
  LayerKey next() const {
    DCHECK(rest.size() >= 8);
    return LayerKey(rest.subspan(8));
  }

  Bytes rest;
  uint64_t slice;
  uint16_t remainder;
};

/// Returns a number that orders the records of one slice: by length, with the key that is longer
/// than its slice last.
inline uint32_t length_class(uint32_t remainder) { return std::min(remainder, 9u); }

}  // namespace atolldb
