// Vectorised search in the slices of a border page, or in the separators of an interior page.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/tsan.h"

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

/// A search among ascending values compares first with the *guide*, a copy of the first value of
/// each stride except stride 0. Then it compares with the values of one stride: two cache lines.
#ifdef ATOLL_STRESS
inline constexpr uint32_t kSearchStride = 4;
#else
inline constexpr uint32_t kSearchStride = 16;
#endif

/// Returns how many of the first min(count, kMost) values are <= `bound`. Compares with all of
/// them, so that no branch depends on their contents. REQUIRES: kMost values can be loaded. Those
/// after the first `count` are ignored, so another thread may write them.
template <uint32_t kMost = kSearchStride>
inline uint32_t count_in_stride(const uint64_t* values, uint32_t count, uint64_t bound) {
  static_assert(kMost % 4 == 0 && kMost < 32);
  DCHECK(count <= UINT8_MAX);  // the instruction of _bzhi_u32 reads 8 bits
#if defined(ATOLL_TSAN) || defined(ATOLL_COUNT_LINES)
  // Loads no value after the first `count`. The sanitizer would report one that another thread
  // writes, and bench/lines would count its line.
  uint32_t below = 0;
  for (uint32_t i = 0; i < std::min(count, kMost); ++i) below += values[i] <= bound ? 1 : 0;
  return below;
#else
  // Signed comparison with the sign bit flipped gives the order of unsigned numbers.
  constexpr auto kSign = static_cast<long long>(uint64_t{1} << 63);
  const __m256i sign = _mm256_set1_epi64x(kSign);
  const __m256i limit = _mm256_set1_epi64x(static_cast<long long>(bound) ^ kSign);
  uint32_t above = ~uint32_t{0} << kMost;  // bit i: values[i] > bound
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kMost; i += 4) {
    const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    const __m256i is_above = _mm256_cmpgt_epi64(_mm256_xor_si256(four, sign), limit);
    above |= static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(is_above))) << i;
  }
  return static_cast<uint32_t>(std::popcount(_bzhi_u32(~above, count)));
#endif
}

/// Returns the start of the stride in which a search for `bound` compares with the values. `guide`
/// has `kGuides` values, of which guide[i] is value number (i + 1) * kSearchStride. It need not
/// reach the last value: the search compares with the values themselves where the guide ends.
template <uint32_t kGuides>
inline uint32_t stride_begin(const uint64_t* values, const uint64_t* guide, uint32_t count,
                             uint64_t bound) {
  // A page without a guide: does not load the line that would hold it.
  if (count <= kSearchStride) return 0;
  const uint32_t guides = (count - 1) / kSearchStride;
  uint32_t at = kSearchStride * count_in_stride<kGuides>(guide, guides, bound);
  for (uint32_t probe = (kGuides + 1) * kSearchStride; probe < count; probe += kSearchStride) {
    at += values[probe] <= bound ? kSearchStride : 0;
  }
  return at;
}

/// Returns how many of the first `count` values are <= `bound`. REQUIRES: they ascend, and `guide`
/// is their guide.
template <uint32_t kGuides>
inline uint32_t count_at_or_below(const uint64_t* values, const uint64_t* guide, uint32_t count,
                                  uint64_t bound) {
  const uint32_t at = stride_begin<kGuides>(values, guide, count, bound);
  DCHECK(at <= count);
  return at + count_in_stride(values + at, count - at, bound);
}

}  // namespace atolldb
