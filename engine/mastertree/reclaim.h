// Reclaims the pages of deleted records from a page that a walk of the whole tree visits, or that a
// hint names (R45, R46, R70). Only system transactions use this: all locks are tried.
#pragma once

#include <cstdint>

#include "engine/format/tree_page.h"
#include "engine/mastertree/descent.h"

namespace atolldb {

/// What a compaction of a border page could remove.
struct PageContent {
  uint32_t removable = 0;  // old tombstones, and next layers that are empty
  uint32_t young = 0;      // tombstones that a later compaction can remove
  /// An empty layer counts as removable, and frees a page of its own.
  bool has_empty_layer = false;
  /// Some next layer is one living record, which could take the slot of its layer (R70).
  bool has_lone_record = false;
};

/// Counts without locks: the result is a hint.
PageContent content_of(WorkerContext& worker, BorderPage* page, PageVersion version);

/// Replaces the page by one without its old tombstones and empty layers (R45). If
/// `collapses_layers`, records of one-record layers take the slots of their layers (R70). Returns
/// false if the page is unchanged: another thread has a lock, or the pool has no pages. Holds no
/// lock on return. REQUIRES: the worker is between transactions, and its begin epoch is published.
bool compact(WorkerContext& worker, BorderPage* page, bool collapses_layers);

/// Reclaims what it can from the border page on a path in one layer, whatever hints were lost:
/// first from the single-page layers below it, from the bottom up, then from the page itself. Then
/// merges the page with its neighbours if it is empty. `root` leads to the layer. Returns whether
/// the page or one on its path was replaced. REQUIRES: as `compact`.
bool reclaim_path(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                  BorderPage* page);

}  // namespace atolldb
