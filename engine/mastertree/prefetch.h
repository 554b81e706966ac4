// Prefetches the cache lines that look-ups and scans will touch. A call takes many keys, so that
// their cache misses overlap. These are hints: if a page is replaced meanwhile, the wrong lines are
// loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/mastertree.h"
#include "engine/transaction/cold_batch.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

inline constexpr uint32_t kLineBytes = 64;

template <uint32_t kLines>
inline void prefetch_lines(const TreePage* page) {
  const auto* start = reinterpret_cast<const std::byte*>(page);
#pragma GCC unroll 8
  for (uint32_t line = 0; line < kLines; ++line) __builtin_prefetch(start + line * kLineBytes);
}

/// Prefetches the bytes in [begin, end).
inline void prefetch_lines(const void* begin, const void* end) {
  const auto* last = static_cast<const std::byte*>(end);
  for (const auto* at = static_cast<const std::byte*>(begin); at < last; at += kLineBytes) {
    __builtin_prefetch(at);
  }
}

/// Number of lines of a border page that a prefetch loads at its start, and at its end.
inline constexpr uint32_t kScannedLines = 8;

/// Prefetches the header of a page, and the first slices of a border page or the guide of an
/// interior page.
inline void prefetch_page_start(const TreePage* page, bool is_border) {
  if (is_border) {
    prefetch_lines<kScannedLines>(page);
  } else {
    const auto* interior = static_cast<const InteriorPage*>(page);
    __builtin_prefetch(page);
    prefetch_lines(interior->guide, interior->separators);
  }
}

/// Prefetches parts of the border page that a scan visits next: its start, which has all slots if
/// the records are of medium size, and its end, where the first records lie: kScannedLines each.
inline void prefetch_scanned_page(const PageHeader* page) {
  prefetch_page_start(reinterpret_cast<const TreePage*>(page), true);
  const auto* end = reinterpret_cast<const std::byte*>(page) + kPageBytes;
  for (uint32_t line = 1; line <= kScannedLines; ++line) {
    __builtin_prefetch(end - line * kLineBytes);
  }
}

/// Prefetches slots and heads of records in the next three pages of a walk through border pages,
/// because such a walk waits for memory most of the time. First the header of a page, one page
/// later its slots, and then its records. `next(distance)` returns the border page that the walk
/// visits `distance` pages later, or null.
template <typename Next>
void prefetch_walk(Next&& next) {
  if (const BorderPage* page = next(3)) prefetch_lines<sizeof(TreePage) / kLineBytes>(page);
  if (const BorderPage* page = next(2); page != nullptr && page->is_border()) {
    prefetch_lines(page->slices(), page->offsets() + page->slot_capacity());
  }
  if (BorderPage* page = next(1); page != nullptr && page->is_border()) {
    const uint32_t count = page->header.version().count();
    for (uint32_t slot = 0; slot < count; ++slot) __builtin_prefetch(page->record(slot));
  }
}

/// Whether a prefetch reads missing snapshot pages of cold keys, and waits for them.
enum class ColdPages : uint8_t { read, skip };

/// Prefetches the border page of the first layer for each key, and the next `records` records in
/// that page. If `records` is 0, prefetches only the start of the page, and does not wait for it.
/// Stores the pages in the worker's memo, so the look-ups that follow need not descend.
void prefetch_records(WorkerContext& worker, StorageControl& storage, std::span<const Bytes> keys,
                      uint32_t records, ColdPages cold_pages = ColdPages::read);

/// Prefetches the start of the border page of the first layer that holds the slice, and its end,
/// where the first records lie. Does not wait for the page. Stores it in the worker's memo.
void prefetch_border(WorkerContext& worker, StorageControl& storage, uint64_t slice);

/// Does the same as `MasterTree::prefetch` for the worker's next transaction, while `txn` is
/// active. Never waits for a device, because that would delay the commit of `txn`.
///
/// Safe because it is a hint. It registers nothing in `txn`, so it has no part in what the commit
/// of `txn` verifies. The begin epoch of `txn` protects the pages that it follows (R9). The pages
/// in the memo are valid as long as that epoch, and every look-up checks their version and range.
/// If the next transaction begins in a later epoch, the memo is empty, and only the lines in the
/// processor's caches remain.
void prefetch_ahead(Transaction& txn, const MasterTree& tree, std::span<const Bytes> keys,
                    uint32_t records = 1);

/// Adds the snapshot page that a look-up of the key will read to a batch. Adds nothing if the key's
/// page or its record is in memory, or if the batch is not wanted. May read the pages above that
/// page one by one. A hint, which registers nothing.
void add_cold(Transaction& txn, const MasterTree& tree, Bytes key, ColdBatch& batch);

}  // namespace atolldb
