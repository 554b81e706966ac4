#include "soc/snapshot/drop_budget.h"

#include "shared/memory/page_pool.h"

namespace atolldb {

PoolGauge pool_gauge(const ClusterView& view, uint32_t node) {
  const auto& pool = *reinterpret_cast<const PoolControl*>(view.pool[node]);
  // Relaxed: a moment later it is another.
  return {pool.page_count - pool.first_page, pool.free_count.load(std::memory_order_relaxed)};
}

bool DropBudget::allows(uint32_t node, uint64_t retired) {
  // Those that went first are free first: they are in the gauge.
  while (on_their_way_.size() > retired) {
    --count_[on_their_way_.front()];
    on_their_way_.pop_front();
  }
  const PoolGauge pool = pool_gauge(*view_, node);
  if ((pool.free + count_[node]) * 100 >= pool.total * high_water_) return false;
  on_their_way_.push_back(static_cast<uint8_t>(node));
  ++count_[node];
  return true;
}

}  // namespace atolldb
