// Keys as 64-bit slices, one per layer (Masstree; foedus.txt section 8.1).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/mastertree/record.h"

namespace atolldb {

using Bytes = std::span<const std::byte>;

inline constexpr uint32_t kMaxTreeKeyBytes = 1024;

/// The first 8 bytes as a big-endian integer, missing ones zero: orders like the bytes do.
inline uint64_t slice_of(Bytes rest) {
  uint64_t slice = 0;
  if (rest.size() >= 8) {
    std::memcpy(&slice, rest.data(), 8);
  } else if (!rest.empty()) {
    std::memcpy(&slice, rest.data(), rest.size());
  }
  return __builtin_bswap64(slice);
}

/// Order of keys: that of their bytes, a prefix before what goes on behind it.
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

/// The roundest fence between neighbours `left` < `right`: of all values in (left, right] the one
/// that ends in most zero bits. So ranges come to end where common prefixes of keys do, and what is
/// appended behind one prefix does not disturb who reads from the start of the next (the shortest
/// separators of prefix B-trees, Bayer and Unterauer 1977).
inline uint64_t fence_between(uint64_t left, uint64_t right) {
  const int differing = 63 - std::countl_zero(left ^ right);
  return right & (~uint64_t{0} << differing);
}

/// What of a key is left at a layer.
struct LayerKey {
  explicit LayerKey(Bytes rest_of_key)
      : rest(rest_of_key),
        slice(slice_of(rest_of_key)),
        remainder(static_cast<uint16_t>(rest_of_key.size())) {}

  /// Key bytes behind the slice; empty when the key ends in this layer.
  Bytes suffix() const { return remainder > 8 ? rest.subspan(8) : Bytes(); }
  LayerKey next() const { return LayerKey(rest.subspan(8)); }

  Bytes rest;
  uint64_t slice;
  uint16_t remainder;
};

/// Order among records of one slice: by length; the one that goes on comes last.
inline uint32_t length_class(uint32_t remainder) { return std::min(remainder, 9u); }

}  // namespace atolldb
