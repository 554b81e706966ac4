// Search among the slices of a border page.
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

/// First slot with a slice >= the wanted one; slots ascend.
inline uint32_t find_lower_bound(const uint64_t* slices, uint32_t count, uint64_t slice) {
  uint32_t low = 0;
  while (count > 0) {
    const uint32_t half = count / 2;
    const bool right = slices[low + half] < slice;
    low = right ? low + half + 1 : low;
    count = right ? count - half - 1 : half;
  }
  return low;
}

}  // namespace atolldb
