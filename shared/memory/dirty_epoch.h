// The latest epoch of the cluster in which records were committed (R27).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "shared/memory/node_layout.h"

namespace atolldb {

/// Returns the latest epoch in which a worker of one of these nodes has committed records, or 0 if
/// no worker has. A commit makes its epoch dirty before it unlocks its records. So every commit
/// that was acknowledged, or whose unlocked records the caller has seen, is of this epoch or an
/// earlier one. The coordinator requests a marker for this epoch once it has ended, so a wait for
/// its durability ends.
inline uint64_t latest_dirty_epoch(std::span<NodeShared* const> nodes) {
  uint64_t dirty = 0;
  for (NodeShared* node : nodes) {
    // seq_cst pairs with the compare-and-swap of the worker that raised the word.
    dirty = std::max(dirty, node->dirty_epoch.load(std::memory_order_seq_cst));
  }
  return dirty;
}

}  // namespace atolldb
