// Vectorised search in the slices of a border page, or in the separators of an interior page.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "shared/base/check.h"

namespace atolldb {

/// Returns the first slot >= `from` with this slice, or `count` if no slot has it.
inline uint32_t find_equal(const uint64_t* slices, uint32_t from, uint32_t count, uint64_t slice) {
  DCHECK(from <= count);
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

/// Distance between the values that a search compares first: two cache lines.
inline constexpr uint32_t kSearchStride = 16;

/// Returns how many of the first min(count, kSearchStride) values are <= `bound`. Compares with all
/// of them, so that no branch depends on their contents. Loads no value after the first `count`.
inline uint32_t count_in_stride(const uint64_t* values, uint32_t count, uint64_t bound) {
  // Signed comparison with the sign bit flipped gives the order of unsigned numbers.
  constexpr auto kSign = static_cast<long long>(uint64_t{1} << 63);
  const __m256i sign = _mm256_set1_epi64x(kSign);
  const __m256i limit = _mm256_set1_epi64x(static_cast<long long>(bound) ^ kSign);
  const __m256i end = _mm256_set1_epi64x(count);
  __m256i at = _mm256_setr_epi64x(0, 1, 2, 3);
  __m256i found = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kSearchStride; i += 4) {
    const __m256i there = _mm256_cmpgt_epi64(end, at);
    const __m256i four =
        _mm256_maskload_epi64(reinterpret_cast<const long long*>(values + i), there);
    const __m256i above = _mm256_cmpgt_epi64(_mm256_xor_si256(four, sign), limit);
    // Adds -1 to a lane for each value that exists and is not above the bound.
    found = _mm256_add_epi64(found, _mm256_andnot_si256(above, there));
    at = _mm256_add_epi64(at, _mm256_set1_epi64x(4));
  }
  const __m128i two =
      _mm_add_epi64(_mm256_castsi256_si128(found), _mm256_extracti128_si256(found, 1));
  const __m128i one = _mm_add_epi64(two, _mm_unpackhi_epi64(two, two));
  return static_cast<uint32_t>(-_mm_cvtsi128_si32(one));
}

/// Returns how many of the ascending values are <= `bound`. Takes two steps of independent
/// comparisons instead of a bisection, so that the cache lines of a step load at the same time. The
/// number of slots in border pages varies little, so the processor predicts the loops well.
inline uint32_t count_at_or_below(const uint64_t* values, uint32_t count, uint64_t bound) {
  uint32_t at = 0;
  for (uint32_t probe = kSearchStride; probe < count; probe += kSearchStride) {
    at += values[probe] <= bound ? kSearchStride : 0;
  }
  const uint32_t end = std::min(at + kSearchStride, count);
  uint32_t result = at;
  // Signed comparison with the sign bit flipped gives the order of unsigned numbers.
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

/// Returns the start of the stride in which `count_at_or_below` searches for `bound`. `guide[i]` is
/// value number (i + 1) * kSearchStride. REQUIRES: count <= kSearchStride * (kSearchStride + 1).
inline uint32_t stride_begin(const uint64_t* guide, uint32_t count, uint64_t bound) {
  const uint32_t guides = count == 0 ? 0 : (count - 1) / kSearchStride;
  return kSearchStride * count_in_stride(guide, guides, bound);
}

/// Returns the same as the overload above. It loads fewer cache lines, because `guide` has the
/// first value of each stride. REQUIRES: as for `stride_begin`.
inline uint32_t count_at_or_below(const uint64_t* values, const uint64_t* guide, uint32_t count,
                                  uint64_t bound) {
  const uint32_t at = stride_begin(guide, count, bound);
  DCHECK(at <= count);
  return at + count_in_stride(values + at, count - at, bound);
}

/// Returns the first slot with a slice >= the wanted one. REQUIRES: the slots ascend.
inline uint32_t find_lower_bound(const uint64_t* slices, uint32_t count, uint64_t slice) {
  return slice == 0 ? 0 : count_at_or_below(slices, count, slice - 1);
}

}  // namespace atolldb
