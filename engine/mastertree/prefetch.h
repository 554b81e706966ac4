// Loading ahead what look-ups and scans will touch, many at a time: their cache misses overlap.
// Only hints: pages may be replaced meanwhile, and then the wrong lines were loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/mastertree/key.h"
#include "engine/mastertree/page.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

template <uint32_t kLines>
inline void prefetch_lines(const TreePage* page) {
  const auto* start = reinterpret_cast<const std::byte*>(page);
#pragma GCC unroll 8
  for (uint32_t line = 0; line < kLines; ++line) __builtin_prefetch(start + line * 64);
}

/// The header of a page, and the first slices of a border page or the guide of an interior one.
inline void prefetch_page_start(const TreePage* page, bool is_border) {
  constexpr uint32_t kInteriorLines = (sizeof(TreePage) + sizeof(InteriorPage::guide)) / 64;
  if (is_border) {
    prefetch_lines<8>(page);
  } else {
    prefetch_lines<kInteriorLines>(page);
  }
}

/// A border page that a scan comes to next: its start, with all slots of a page of middling
/// records, and the first records, which lie at its end.
inline void prefetch_scanned_page(const PageHeader* page) {
  prefetch_page_start(reinterpret_cast<const TreePage*>(page), true);
  const auto* end = reinterpret_cast<const std::byte*>(page) + kPageBytes;
  for (uint32_t line = 1; line <= 8; ++line) __builtin_prefetch(end - line * 64);
}

/// Of each key: the border page of the first layer, and the `records` records from it on, as far as
/// they are in the same page; with 0 the page's start alone, and nothing waits for it. The look-ups
/// that follow need not descend again.
void prefetch_records(WorkerContext& worker, StorageControl& storage, std::span<const Bytes> keys,
                      uint32_t records);

}  // namespace atolldb
