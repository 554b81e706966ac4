// Sorts a write set into universal order (R22).
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/transaction/access_sets.h"
#include "shared/base/check.h"

namespace atolldb {

// The order of a new write set is unpredictable, and a mispredicted branch costs as much as a dozen
// comparisons. So up to kMostMerged entries are sorted without data-dependent branches: a rank sort
// of runs of up to kLongestRun entries, then merges of the runs.
inline constexpr uint32_t kLongestRun = 48;
inline constexpr uint32_t kMostMerged = 8 * kLongestRun;

namespace detail {

inline __m256i load_four(const int64_t* names) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(names));
}

/// Rank sort of at most `kRoom` entries: counts for each entry how many precede it. The cost is
/// quadratic, but every loop over pairs has a constant length.
template <uint32_t kRoom>
void rank_sort(WriteEntry* writes, uint32_t count) {
  constexpr uint32_t kLanes = 4;
  static_assert(kRoom % (2 * kLanes) == 0);
  DCHECK(count <= kRoom);
  static_assert(sizeof(WriteEntry) == 2 * sizeof(int64_t) && offsetof(WriteEntry, record) == 0);
  // Names have 51 bits, so signed comparison orders them correctly. The padding INT64_MAX is last.
  alignas(32) int64_t names[kRoom];
  alignas(32) int64_t ranks[kRoom];
  alignas(32) __m128i unsorted[kRoom];
  auto* const entries = reinterpret_cast<__m128i*>(writes);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRoom; i += 2) {
    const __m256i is_there =
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(i, i, i + 1, i + 1));
    const __m256i two =
        _mm256_maskload_epi64(reinterpret_cast<const long long*>(entries + i), is_there);
    _mm256_store_si256(reinterpret_cast<__m256i*>(unsorted + i), two);
    const __m256i padded = _mm256_blendv_epi8(_mm256_set1_epi64x(INT64_MAX), two, is_there);
    _mm_store_si128(
        reinterpret_cast<__m128i*>(names + i),
        _mm_unpacklo_epi64(_mm256_castsi256_si128(padded), _mm256_extracti128_si256(padded, 1)));
  }
  for (uint32_t i = 0; i < kRoom; i += 2 * kLanes) {
    const __m256i low = load_four(names + i);
    const __m256i high = load_four(names + i + kLanes);
    __m256i low_ranks = _mm256_setzero_si256();
    __m256i high_ranks = low_ranks;
#pragma GCC unroll 8
    for (uint32_t j = 0; j < kRoom; ++j) {
      const __m256i name = _mm256_set1_epi64x(names[j]);
      low_ranks = _mm256_sub_epi64(low_ranks, _mm256_cmpgt_epi64(low, name));
      high_ranks = _mm256_sub_epi64(high_ranks, _mm256_cmpgt_epi64(high, name));
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(ranks + i), low_ranks);
    _mm256_store_si256(reinterpret_cast<__m256i*>(ranks + i + kLanes), high_ranks);
  }
  // All names differ (R14). Two equal names would share a rank, and one position would keep its old
  // entry. lock_in_order would find this, because it checks that the names ascend.
  for (uint32_t i = 0; i < count; ++i) _mm_storeu_si128(entries + ranks[i], unsorted[i]);
}

/// Sorts one run with the smallest size that fits. The sizes are for the writes of a TPC-C payment,
/// for those of a new order, and for others.
inline void sort_run(WriteEntry* writes, uint32_t count) {
  if (count <= 8) return rank_sort<8>(writes, count);
  if (count <= 32) return rank_sort<32>(writes, count);
  rank_sort<kLongestRun>(writes, count);
}

/// Merges two adjacent sorted runs into other memory.
inline void merge_runs(const WriteEntry* left, const WriteEntry* middle, const WriteEntry* end,
                       WriteEntry* out) {
  DCHECK(left <= middle && middle <= end);
  const WriteEntry* right = middle;
  while (left != middle && right != end) {
    const auto is_right = static_cast<std::ptrdiff_t>(by_record(*right, *left));
    // Takes *right or *left without a branch.
    *out++ = left[(right - left) & -is_right];
    right += is_right;
    left += 1 - is_right;
  }
  out = std::copy(left, middle, out);
  std::copy(right, end, out);
}

}  // namespace detail

/// Sorts by record. REQUIRES: names differ (R14). Uses up to 6 KiB of stack; allocates nothing.
inline void sort_writes(WriteEntry* writes, uint32_t count) {
  if (count <= kLongestRun) return detail::sort_run(writes, count);
  if (count > kMostMerged) {
    // A lambda, because std::sort inlines it but not a function pointer.
    std::sort(writes, writes + count,
              [](const WriteEntry& a, const WriteEntry& b) { return by_record(a, b); });
    return;
  }
  for (uint32_t first = 0; first < count; first += kLongestRun) {
    detail::sort_run(writes + first, std::min(kLongestRun, count - first));
  }
  std::array<WriteEntry, kMostMerged> room;
  WriteEntry* from = writes;
  WriteEntry* to = room.data();
  for (uint32_t run = kLongestRun; run < count; run *= 2) {
    for (uint32_t first = 0; first < count; first += 2 * run) {
      const uint32_t middle = std::min(first + run, count);
      const uint32_t end = std::min(first + 2 * run, count);
      detail::merge_runs(from + first, from + middle, from + end, to + first);
    }
    std::swap(from, to);
  }
  if (from != writes) std::copy(from, from + count, writes);
  DCHECK(std::is_sorted(writes, writes + count, by_record));
}

}  // namespace atolldb
