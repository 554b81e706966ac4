// Compares what more memory would save: in a node's snapshot cache, or in its page pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/snapshot/ghost_list.h"
#include "shared/base/check.h"

namespace atolldb {

/// Counts of one node since its start.
struct MemoryUse {
  uint64_t pool_bytes = 0;
  uint64_t cache_bytes = 0;  // with the pages that the pool lends now
  uint64_t ghost_hits = 0;   // waits that a cache larger by an eighth would have saved
  uint64_t page_delay_ns = 0;
};

enum class MoreMemory : uint8_t { none, cache, pool, either };
inline constexpr const char* kMoreMemoryNames[] = {"none", "cache", "pool", "either"};

/// Waits that one more MiB would have saved since the node's start, and where it would save more.
struct MemoryAdvice {
  double cache_us_per_mib = 0;
  double pool_us_per_mib = 0;
  MoreMemory more = MoreMemory::none;
};

/// An estimate. A ghost hit counts as one wait for the device, which may get several pages. Delays
/// for pages are taken to fall in proportion as the pool grows. `none`: the waits are too short to
/// matter; `either`: they are about equal.
inline MemoryAdvice advise_memory(const MemoryUse& use) {
  constexpr double kMib = 1 << 20;
  /// Wait for cold pages, which are read at the same time. Device reads take about as long on the
  /// machines of bench/RESULTS.md.
  constexpr double kReadUs = 100;
  /// Waits below this sum per MiB do not matter.
  constexpr double kNoticeableUs = 1'000;
  /// Waits that differ by less than this factor count as equal.
  constexpr double kClearFactor = 2;
  MemoryAdvice advice;
  if (use.cache_bytes == 0 || use.pool_bytes == 0) return advice;
  const double more_mib =
      static_cast<double>(use.cache_bytes) / double{GhostList::kMorePart} / kMib;
  advice.cache_us_per_mib = static_cast<double>(use.ghost_hits) * kReadUs / more_mib;
  advice.pool_us_per_mib =
      static_cast<double>(use.page_delay_ns) * 1e-3 / (static_cast<double>(use.pool_bytes) / kMib);
  CHECK(advice.cache_us_per_mib >= 0 && advice.pool_us_per_mib >= 0);
  const double most = std::max(advice.cache_us_per_mib, advice.pool_us_per_mib);
  if (most < kNoticeableUs) return advice;
  const double least = std::min(advice.cache_us_per_mib, advice.pool_us_per_mib);
  const bool is_cache = advice.cache_us_per_mib == most;
  advice.more = least * kClearFactor > most ? MoreMemory::either
                : is_cache                  ? MoreMemory::cache
                                            : MoreMemory::pool;
  return advice;
}

}  // namespace atolldb
