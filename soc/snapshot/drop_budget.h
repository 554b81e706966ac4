// How many volatile pages an installer may drop: only until enough are free (design: stratified
// snapshots: pages go under pressure alone).
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "shared/limits.h"
#include "shared/memory/cluster_view.h"

namespace atolldb {

/// One installer's; its thread's. Installers of several nodes do not know of each other: together
/// they may drop a few pages too many, which only have to be read again.
class DropBudget {
 public:
  /// Pages of a node go while less than `high_water` percent of its pool are free.
  DropBudget(const ClusterView& view, uint32_t high_water)
      : view_(&view), high_water_(high_water) {}

  /// Whether a page of this node may go; if so, it counts as gone. `retired`: pages that this
  /// installer has dropped and that are in nobody's hands yet.
  bool allows(uint32_t node, uint64_t retired);

 private:
  const ClusterView* view_;
  uint32_t high_water_;
  std::deque<uint8_t> on_their_way_;             // the nodes of pages that went, oldest first
  std::array<uint64_t, kMaxNodes + 1> count_{};  // of them, by node
};

/// Of the node's pool.
struct PoolGauge {
  uint64_t total = 0;
  uint64_t free = 0;
};
PoolGauge pool_gauge(const ClusterView& view, uint32_t node);

}  // namespace atolldb
