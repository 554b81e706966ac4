// Brings a write set into universal order (R22).
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/transaction/access_sets.h"

namespace atolldb {

/// Sorts by record. A small set by counting for each entry how many come before it: quadratic, but
/// without a branch that depends on the order, which in a new write set cannot be predicted.
inline void sort_writes(WriteEntry* writes, uint32_t count) {
  constexpr uint32_t kSmall = 48;
  constexpr uint32_t kLanes = 4;
  if (count > kSmall) {
    // A lambda: std::sort inlines it, and not a pointer to a function.
    std::sort(writes, writes + count,
              [](const WriteEntry& a, const WriteEntry& b) { return by_record(a, b); });
    return;
  }
  // Names have 51 bits: the order is the same with a sign.
  alignas(32) std::array<int64_t, kSmall> names;
  alignas(32) std::array<int64_t, kSmall> places;
  std::array<WriteEntry, kSmall> unsorted;
  for (uint32_t i = 0; i < count; ++i) {
    unsorted[i] = writes[i];
    names[i] = static_cast<int64_t>(writes[i].record.word());
  }
  for (uint32_t i = 0; i < count; i += kLanes) {
    // The last lanes may hold no name: their places are not used.
    const __m256i four = _mm256_load_si256(reinterpret_cast<const __m256i*>(&names[i]));
    __m256i before = _mm256_setzero_si256();
    for (uint32_t j = 0; j < count; ++j) {
      before = _mm256_sub_epi64(before, _mm256_cmpgt_epi64(four, _mm256_set1_epi64x(names[j])));
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(&places[i]), before);
  }
  // Names differ (R14). Equal ones would share a place and leave another entry twice in the set:
  // lock_in_order checks that names ascend.
  for (uint32_t i = 0; i < count; ++i) writes[places[i]] = unsorted[i];
}

}  // namespace atolldb
