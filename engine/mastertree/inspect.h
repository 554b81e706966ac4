// Looking at a whole tree that nobody is changing: for tests, statistics, and drop.
#pragma once

#include <cstdint>
#include <string>

#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

struct TreeStatistics {
  uint64_t border_pages = 0;
  uint64_t interior_pages = 0;
  uint64_t moved_pages = 0;  // replaced, not adopted yet
  uint64_t records = 0;      // live
  uint64_t dead_records = 0;
  uint64_t layers = 0;
  uint64_t cold_subtrees = 0;  // in a snapshot only: not looked at
  uint64_t pages() const { return border_pages + interior_pages + moved_pages; }
};

/// Walks the tree and checks its invariants: ranges tile, slots lie in their page's range, order
/// and uniqueness, levels, no locks held. Empty, or what is wrong. Nobody may change the tree.
std::string check_tree(const ClusterView& view, StorageControl& storage,
                       TreeStatistics& statistics);

/// Retires every page of a dropped tree (R34): no transaction can reach it any more.
void release_tree(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
