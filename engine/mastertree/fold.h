// Folds neighbouring border pages of a delta tree into one page, without the records that a
// snapshot contains (R78). So the pages that a drain empties become free, and not only their room.
#pragma once

#include <cstdint>
#include <span>

#include "engine/format/tree_page.h"
#include "engine/mastertree/descent.h"

namespace atolldb {

/// Maximum number of pages that are folded into one.
inline constexpr uint32_t kMaxFoldedPages = 16;
/// Maximum number of records of these pages.
inline constexpr uint32_t kMaxFoldedRecords = 256;

/// What a fold would do with one page.
struct FoldContent {
  uint32_t records = 0;
  uint32_t covered = 0;  // records that the snapshot contains
  uint32_t bytes = 0;    // of the other records, slots included
  uint32_t covered_bytes = 0;
  bool has_layers = false;       // a record leads to a next layer: the page is not folded
  bool has_empty_layer = false;  // such a layer is a single empty page, so a compaction frees it
};

/// Examines the page without locks, so the result may be outdated. `epoch`: that of the snapshot.
FoldContent fold_content_of(WorkerContext& worker, BorderPage* page, PageVersion version,
                            uint64_t epoch);

/// Returns whether these records fit in one page, and leave room for inserts.
bool fits_folded(uint32_t records, uint32_t bytes);

/// Folds `count` neighbouring children of `parent`, from the one that holds `slice` on. `link`
/// leads to the parent. Only tries locks. Returns false if nothing was done: another thread has a
/// lock, the pages have changed, their records do not fit in one page, or there is no free page.
/// Adds the removed records to `covered` and `covered_bytes` of `removed`. REQUIRES: the pages are
/// in a delta tree; 1 < `count` <= kMaxFoldedPages; the worker is between transactions, and its
/// begin epoch is published.
bool fold_pages(WorkerContext& worker, StorageControl& storage, const Link& link,
                InteriorPage* parent, uint64_t slice, uint32_t count, uint64_t epoch,
                FoldContent& removed);

}  // namespace atolldb
