// Search among the slices of a border page, or the separators of an interior one.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace atolldb {

/// First slot >= from with this slice, or count.
inline uint32_t find_equal(const uint64_t* slices, uint32_t from, uint32_t count, uint64_t slice) {
  const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(slice));
  uint32_t i = from;
  for (; i + 4 <= count; i += 4) {
    const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(slices + i));
    const int mask = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(four, wanted)));
    if (mask != 0) return i + static_cast<uint32_t>(__builtin_ctz(static_cast<unsigned>(mask)));
  }
  for (; i < count; ++i) {
    if (slices[i] == slice) return i;
  }
  return count;
}

/// How many of the ascending values are <= `bound`. In two steps of independent comparisons, not by
/// bisection: the cache lines that a step touches are loaded at the same time, and no branch
/// depends on what is in them.
inline uint32_t count_at_or_below(const uint64_t* values, uint32_t count, uint64_t bound) {
  constexpr uint32_t kStride = 16;
  uint32_t at = 0;
  for (uint32_t probe = kStride; probe < count; probe += kStride) {
    at += values[probe] <= bound ? kStride : 0;
  }
  const uint32_t end = at + kStride < count ? at + kStride : count;
  uint32_t result = at;
  // The order of unsigned numbers is that of signed ones with the sign bit flipped.
  constexpr auto kSign = static_cast<long long>(uint64_t{1} << 63);
  const __m256i sign = _mm256_set1_epi64x(kSign);
  const __m256i limit = _mm256_set1_epi64x(static_cast<long long>(bound) ^ kSign);
  for (; at + 4 <= end; at += 4) {
    const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + at));
    const __m256i above = _mm256_cmpgt_epi64(_mm256_xor_si256(four, sign), limit);
    const int mask = _mm256_movemask_pd(_mm256_castsi256_pd(above));
    result += 4 - static_cast<uint32_t>(__builtin_popcount(static_cast<unsigned>(mask)));
  }
  for (; at < end; ++at) result += values[at] <= bound ? 1 : 0;
  return result;
}

/// First slot with a slice >= the wanted one; slots ascend.
inline uint32_t find_lower_bound(const uint64_t* slices, uint32_t count, uint64_t slice) {
  return slice == 0 ? 0 : count_at_or_below(slices, count, slice - 1);
}

}  // namespace atolldb
