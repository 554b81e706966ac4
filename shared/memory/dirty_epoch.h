// The latest epoch that has commits with records, of the whole cluster (rule R27).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "shared/memory/node_layout.h"

namespace atolldb {

/// Returns the latest epoch in which a worker of any of these nodes has committed records; 0: none
/// has. Every commit whose records the caller has seen unlocked, or that has been answered, is of
/// this epoch or an earlier one: a commit makes its epoch dirty before it unlocks its records. A
/// marker is wanted for this epoch once it is over, so a wait until it is durable ends.
inline uint64_t latest_dirty_epoch(std::span<NodeShared* const> nodes) {
  uint64_t dirty = 0;
  for (NodeShared* node : nodes) {
    // seq_cst pairs with the exchange of the worker that raised it.
    dirty = std::max(dirty, node->dirty_epoch.load(std::memory_order_seq_cst));
  }
  return dirty;
}

}  // namespace atolldb
