// Walks a whole tree that no thread changes: for tests, statistics, and drops.
#pragma once

#include <cstdint>
#include <string>

#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

struct TreeStatistics {
  uint64_t border_pages = 0;
  uint64_t interior_pages = 0;
  uint64_t moved_pages = 0;  // replaced pages whose successors are not adopted yet
  uint64_t records = 0;      // records that are not deleted
  uint64_t tombstones = 0;
  uint64_t layers = 0;
  uint64_t cold_subtrees = 0;  // pointers to data in a snapshot only; not visited
  uint64_t delta_pages = 0;    // pages of the delta tree, not in `pages()`
  uint64_t delta_records = 0;  // records of the delta tree, also deleted ones; not in `records`
  uint64_t pages() const { return border_pages + interior_pages + moved_pages; }
};

/// Walks the tree and checks its invariants: the ranges of siblings have no gap and no overlap,
/// slots lie in their page's range, keys ascend and are unique, levels are right, no lock is held.
/// Returns an empty string, or the first violation. REQUIRES: no thread changes the tree.
std::string check_tree(const ClusterView& view, StorageControl& storage,
                       TreeStatistics& statistics);

/// Retires every page of a dropped tree (R34). REQUIRES: no transaction can reach the tree.
void release_tree(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
