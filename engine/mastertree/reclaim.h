// Removes old tombstones and empty pages of a Master-tree (R45, R46, R70). Works on one border
// page, which a hint names or a walk of the whole tree visits. Locks are only tried, because no
// user transaction needs this.
#pragma once

#include <cstdint>

#include "engine/format/tree_page.h"
#include "engine/mastertree/descent.h"

namespace atolldb {

/// Counts of what a compaction of a border page could remove.
struct PageContent {
  uint32_t removable = 0;  // old tombstones, and next layers that are empty
  uint32_t young = 0;      // tombstones that a later compaction can remove
  /// A next layer is empty. It counts as removable, and its removal frees a page of its own.
  bool has_empty_layer = false;
  /// A next layer has only one record, a living one, which could take the slot of its layer (R70).
  bool has_lone_record = false;
};

/// Examines the page without locks, so the result may be outdated.
PageContent content_of(WorkerContext& worker, BorderPage* page, PageVersion version);

/// Replaces the page by one without its old tombstones and empty layers (R45). `collapses_layers`:
/// the only record of a layer takes the slot of the layer (R70). Returns false if it has not
/// replaced the page: the page has moved, another thread has a lock, the pool has no pages, or
/// there is nothing to remove. Holds no lock on return. REQUIRES: the worker is between
/// transactions, and its begin epoch is published.
bool compact(WorkerContext& worker, BorderPage* page, bool collapses_layers);

/// Reclaims from the border page `page`, which covers `slice`, even if all hints for it were lost.
/// First reclaims from the single-page layers below it, from the bottom up, then from the page
/// itself. If the page is empty, merges it with its neighbours. `root` leads to the layer of the
/// page. Returns whether the page or a page on its path was replaced. REQUIRES: as for `compact`.
bool reclaim_path(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                  BorderPage* page);

}  // namespace atolldb
