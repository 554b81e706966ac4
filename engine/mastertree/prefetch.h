// Prefetches the cache lines that look-ups and scans will touch. A call takes many keys, so that
// their cache misses overlap. These are hints: if a page is replaced meanwhile, the wrong lines are
// loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

template <uint32_t kLines>
inline void prefetch_lines(const TreePage* page) {
  const auto* start = reinterpret_cast<const std::byte*>(page);
#pragma GCC unroll 8
  for (uint32_t line = 0; line < kLines; ++line) __builtin_prefetch(start + line * 64);
}

/// Prefetches the header of a page, and the first slices of a border page or the guide of an
/// interior page.
inline void prefetch_page_start(const TreePage* page, bool is_border) {
  constexpr uint32_t kInteriorLines = (sizeof(TreePage) + sizeof(InteriorPage::guide)) / 64;
  if (is_border) {
    prefetch_lines<8>(page);
  } else {
    prefetch_lines<kInteriorLines>(page);
  }
}

/// Prefetches parts of the border page that a scan visits next: its start, which has all slots if
/// the records are of medium size, and its end, where the first records lie.
inline void prefetch_scanned_page(const PageHeader* page) {
  prefetch_page_start(reinterpret_cast<const TreePage*>(page), true);
  const auto* end = reinterpret_cast<const std::byte*>(page) + kPageBytes;
  for (uint32_t line = 1; line <= 8; ++line) __builtin_prefetch(end - line * 64);
}

/// Prefetches the border page of the first layer for each key, and the next `records` records in
/// that page. If `records` is 0, prefetches only the start of the page, and does not wait for it.
/// Stores the pages in the worker's memo, so the look-ups that follow need not descend.
void prefetch_records(WorkerContext& worker, StorageControl& storage, std::span<const Bytes> keys,
                      uint32_t records);

}  // namespace atolldb
