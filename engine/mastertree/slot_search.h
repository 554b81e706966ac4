// Search among the slices of a border page, or the separators of an interior one.
#pragma once

#include <immintrin.h>

#include <algorithm>
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

/// Values between two that a search looks at first: two cache lines of them.
inline constexpr uint32_t kSearchStride = 16;

/// How many of the ascending values are <= `bound`, of at most a stride. Compares with all of them,
/// so that no branch depends on what is in them; those from `count` on are not loaded.
inline uint32_t count_in_stride(const uint64_t* values, uint32_t count, uint64_t bound) {
  // The order of unsigned numbers is that of signed ones with the sign bit flipped.
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
    // Minus one where a value is there and not above.
    found = _mm256_add_epi64(found, _mm256_andnot_si256(above, there));
    at = _mm256_add_epi64(at, _mm256_set1_epi64x(4));
  }
  const __m128i two =
      _mm_add_epi64(_mm256_castsi256_si128(found), _mm256_extracti128_si256(found, 1));
  const __m128i one = _mm_add_epi64(two, _mm_unpackhi_epi64(two, two));
  return static_cast<uint32_t>(-_mm_cvtsi128_si32(one));
}

/// How many of the ascending values are <= `bound`. In two steps of independent comparisons, not by
/// bisection: the cache lines that a step touches are loaded at the same time. Border pages have
/// the same few counts again and again, so that the loops are predicted.
inline uint32_t count_at_or_below(const uint64_t* values, uint32_t count, uint64_t bound) {
  uint32_t at = 0;
  for (uint32_t probe = kSearchStride; probe < count; probe += kSearchStride) {
    at += values[probe] <= bound ? kSearchStride : 0;
  }
  const uint32_t end = std::min(at + kSearchStride, count);
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

/// Where the stride begins that decides about `bound`, by a guide: guide[i] is the value number
/// (i + 1) * kSearchStride. REQUIRES: count <= kSearchStride * (kSearchStride + 1).
inline uint32_t stride_begin(const uint64_t* guide, uint32_t count, uint64_t bound) {
  const uint32_t guides = count == 0 ? 0 : (count - 1) / kSearchStride;
  return kSearchStride * count_in_stride(guide, guides, bound);
}

/// The same as above with such a guide: fewer cache lines.
inline uint32_t count_at_or_below(const uint64_t* values, const uint64_t* guide, uint32_t count,
                                  uint64_t bound) {
  const uint32_t at = stride_begin(guide, count, bound);
  return at + count_in_stride(values + at, count - at, bound);
}

/// First slot with a slice >= the wanted one; slots ascend.
inline uint32_t find_lower_bound(const uint64_t* slices, uint32_t count, uint64_t slice) {
  return slice == 0 ? 0 : count_at_or_below(slices, count, slice - 1);
}

}  // namespace atolldb
