#include "soc/installer/drop_policy.h"

#include "shared/base/check.h"
#include "shared/memory/page_pool.h"

namespace atolldb {

/// Removes the pages that are free by now from `on_their_way_`, because the pool counts them as
/// free. Pages become free in the order in which they were dropped.
void DropPolicy::count_arrivals(uint64_t retired) {
  while (on_their_way_.size() > retired) {
    const uint64_t before =
        dropped_->count[on_their_way_.front()].fetch_sub(1, std::memory_order_relaxed);
    CHECK(before > 0);
    on_their_way_.pop_front();
  }
}

bool DropPolicy::is_short(uint32_t node) const {
  const auto& pool = *reinterpret_cast<const PoolControl*>(view_->pool[node]);
  CHECK(pool.page_count > pool.first_page);
  const uint64_t total = pool.page_count - pool.first_page;
  const uint64_t free = pool.available();
  // Relaxed: other threads change the value at any time, so it is only an estimate.
  const uint64_t on_their_way = dropped_->count[node].load(std::memory_order_relaxed);
  return (free + on_their_way) * 100 < total * limits_.free_percent;
}

DropVerdict DropPolicy::judge(PageHeader& page, uint64_t retired) {
  count_arrivals(retired);
  // Relaxed, also for the store below: the reference bit is only a hint, so a lost change does no
  // harm.
  if (limits_.spares_hot && page.reference_bit.load(std::memory_order_relaxed) != 0) {
    page.reference_bit.store(0, std::memory_order_relaxed);
    return DropVerdict::keep_hot;
  }
  const uint32_t node = page.volatile_self().node();
  CHECK(node < view_->node_count);
  if (!is_short(node)) return DropVerdict::keep;
  on_their_way_.push_back(static_cast<uint8_t>(node));
  dropped_->count[node].fetch_add(1, std::memory_order_relaxed);
  return DropVerdict::drop;
}

}  // namespace atolldb
