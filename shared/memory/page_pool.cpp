#include "shared/memory/page_pool.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>

#include "shared/base/check.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

void PagePool::format(std::byte* base, uint64_t bytes) {
  auto* control = reinterpret_cast<PoolControl*>(base);
  const uint64_t pages = bytes / kPageBytes;
  CHECK(pages <= VolatilePointer::kIndexMask);
  CHECK(control->page_count == 0);  // not formatted before
  const uint64_t control_bytes = sizeof(PoolControl) + pages * sizeof(uint32_t);
  control->page_count = pages;
  control->first_page = (control_bytes + kPageBytes - 1) / kPageBytes;
  CHECK(control->first_page < pages);
  auto* stack = reinterpret_cast<uint32_t*>(control + 1);
  uint64_t count = 0;
  // Low indexes are on top, so that a small working set stays in few huge pages.
  for (uint64_t page = pages; page-- > control->first_page;) {
    stack[count++] = static_cast<uint32_t>(page);
  }
  CHECK(count == pages - control->first_page);
  control->free_count.store(count, std::memory_order_release);
}

PagePool::PagePool(const ClusterView& view, uint32_t node)
    : view_(&view), node_(node), control_(reinterpret_cast<PoolControl*>(view.pool[node])) {
  CHECK(control_ != nullptr);
  CHECK(control_->first_page > 0 && control_->first_page < control_->page_count);
}

void PagePool::push_locked(uint32_t index) {
  const uint64_t count = control_->free_count.load(std::memory_order_relaxed);
  CHECK(index >= control_->first_page && index < control_->page_count && count < page_count());
  free_stack()[count] = index;
  set_free_locked(count + 1);
}

void PagePool::set_free_locked(uint64_t count) {
  control_->free_count.store(count, std::memory_order_relaxed);
  publish_available();
}

/// Sets the gauge `pages_free`. The coordinator reads it between heartbeats to see whether the pool
/// is low. Lent pages count as free.
void PagePool::publish_available() {
  view_->shared[node_]->pages_free.store(control_->available(), std::memory_order_relaxed);
}

uint32_t PagePool::grab(uint32_t* indexes, uint32_t count, bool is_demand) {
  // A worker takes this mutex once per kBatchPages pages. Only threads of one node compete for it.
  const std::lock_guard guard(control_->lock);
  // The rings are small, so pages that an install frees come back only if they are emptied often.
  // The limit is on a line that the coordinator writes every 5 ms while there is one, and this
  // loads it once per batch.
  if (is_limited() || free_for_demand() < count) {
    collect_returns_locked();
  }
  const uint64_t free = control_->free_count.load(std::memory_order_relaxed);
  const uint64_t usable = is_demand ? free_for_demand() : free;
  const auto taken = static_cast<uint32_t>(std::min<uint64_t>(usable, count));
  DCHECK(free <= page_count());
  for (uint32_t i = 0; i < taken; ++i) {
    indexes[i] = free_stack()[free - 1 - i];
    DCHECK(indexes[i] >= control_->first_page && indexes[i] < control_->page_count);
  }
  set_free_locked(free - taken);
  if (is_demand) count_taken_locked(taken);
  signal_reclaim_locked();
  return taken;
}

/// Wakes the thread in await_reclaim if lent pages must return. Makes at most one system call for
/// each wait of that thread.
void PagePool::signal_reclaim_locked() {
  if (!awaits_reclaim_ || pages_to_reclaim() == 0) return;
  awaits_reclaim_ = false;
  control_->reclaim_signal.fetch_add(1, std::memory_order_relaxed);
  wake(control_->reclaim_signal, 1);
}

bool PagePool::can_lend() const {
  return free_count() > kept_pages() + kept_pages() / kLendMarginPart;
}

uint64_t PagePool::pages_to_reclaim() const {
  const uint64_t free = free_count();
  const uint64_t kept = kept_pages();
  return free >= kept ? 0 : std::min(kept + kept / kReclaimMarginPart - free, lent_count());
}

uint32_t PagePool::lend(uint32_t* indexes, uint32_t count) {
  const std::lock_guard guard(control_->lock);
  if (!can_lend()) return 0;
  const uint64_t free = free_count();
  const auto lent = static_cast<uint32_t>(std::min<uint64_t>(count, free - kept_pages()));
  DCHECK(lent <= free);
  for (uint32_t i = 0; i < lent; ++i) indexes[i] = free_stack()[free - 1 - i];
  control_->lent_count.store(lent_count() + lent, std::memory_order_relaxed);
  set_free_locked(free - lent);
  return lent;
}

void PagePool::take_back(const uint32_t* indexes, uint32_t count) {
  const std::lock_guard guard(control_->lock);
  CHECK(count <= lent_count());
  for (uint32_t i = 0; i < count; ++i) {
    // The name tells earlier uses of the page apart from the next one (PageAllocator::take).
    const VolatilePointer name(page(indexes[i])->self);
    CHECK(name.word() == 0 || (name.node() == node_ && name.index() == indexes[i]));
    push_locked(indexes[i]);
  }
  // After the pages are free, so that their sum never seems smaller than it is.
  control_->lent_count.store(lent_count() - count, std::memory_order_relaxed);
  publish_available();
}

void PagePool::await_reclaim(uint32_t seen) {
  constexpr std::chrono::seconds kMaxWait{10};
  {
    const std::lock_guard guard(control_->lock);
    if (pages_to_reclaim() != 0) return;
    awaits_reclaim_ = true;
  }
  wait_on(control_->reclaim_signal, seen, kMaxWait);
}

void PagePool::end_wait() {
  const std::lock_guard guard(control_->lock);
  awaits_reclaim_ = false;
  control_->reclaim_signal.fetch_add(1, std::memory_order_release);
  wake(control_->reclaim_signal, kWakeAll);
}

uint32_t PagePool::batch_pages() const {
  const NodeShared& node = *view_->shared[node_];
  const uint64_t limit = node.page_limit.load(std::memory_order_relaxed);
  if (limit == 0) return kBatchPages;
  DCHECK(node.worker_count != 0);
  const uint64_t share = limit / (kLimitedBatchesPerS * node.worker_count);
  return static_cast<uint32_t>(std::clamp<uint64_t>(share, kFewestPages, kBatchPages));
}

/// Adds to the gauge `pages_taken`; a negative number wraps around.
void PagePool::count_taken_locked(uint64_t pages) {
  // Relaxed: the word has one writer at a time, the holder of the lock.
  std::atomic<uint64_t>& sum = view_->shared[node_]->pages_taken;
  sum.store(sum.load(std::memory_order_relaxed) + pages, std::memory_order_relaxed);
}

bool PagePool::is_limited() const {
  return view_->shared[node_]->page_limit.load(std::memory_order_relaxed) != 0;
}

void PagePool::give(const uint32_t* indexes, uint32_t count, uint32_t unused) {
  DCHECK(unused <= count);
  const std::lock_guard guard(control_->lock);
  count_taken_locked(-uint64_t{unused});
  for (uint32_t i = 0; i < count; ++i) push_locked(indexes[i]);
}

void PagePool::collect_returns() {
  const std::lock_guard guard(control_->lock);
  collect_returns_locked();
  publish_available();
}

void PagePool::collect_returns_locked() {
  for (uint32_t sender = 0; sender < view_->node_count; ++sender) {
    ReturnRing& ring = view_->shared[node_]->return_ring(sender);
    for (VolatilePointer page = ring.pop(); !page.is_null(); page = ring.pop()) {
      CHECK(page.node() == node_);
      push_locked(page.index());
    }
  }
}

bool PagePool::free_remote(VolatilePointer page) {
  DCHECK(page.node() != node_ && page.node() < view_->node_count);
  // The return ring is the only way of a retired page to the pool of another node. The push writes
  // a remote cache line, once per such page.
  const std::lock_guard guard(send_locks_[page.node()]);
  return view_->shared[page.node()]->return_ring(node_).push(page);
}

bool PageAllocator::reserve(uint32_t count) {
  DCHECK(count <= kMaxReserve);
  if (cached_count_ >= count) return true;
  DCHECK(cached_count_ + PagePool::kBatchPages <= cached_.size());
  batch_ = std::max(count, pool_->batch_pages());
  const uint32_t taken = pool_->grab(cached_.data() + cached_count_, batch_, is_demand_);
  cached_count_ += taken;
  fresh_ += taken;
  DCHECK(cached_count_ <= cached_.size());
  return cached_count_ >= count;
}

uint64_t PageAllocator::free_in_pool() {
  pool_->collect_returns();
  return pool_->free_for_demand();
}

PageHeader* PageAllocator::take() {
  if (!reserve(1)) return nullptr;
  const uint32_t index = cached_[--cached_count_];
  if (fresh_ != 0) {
    --fresh_;
    ++unpaid_;
  }
  PageHeader* page = pool_->page(index);
  // No cache has the header of a page that was free for long. So this loads the next one's early.
  if (cached_count_ != 0) __builtin_prefetch(pool_->page(cached_[cached_count_ - 1]), 1);
  // A recycled page still has its former name. In a page that was never used, `self` is 0.
  const VolatilePointer before(page->self);
  DCHECK(page->self == 0 || (before.index() == index && before.node() == pool_->node()));
  const uint64_t generation = before.generation() + 1u;
  // The new name is stored before the version: a thread that finds the page by an earlier name
  // loads the version first, and then the name (R86).
  const uint64_t name = VolatilePointer::make(pool_->node(), generation, index).word();
  std::atomic_ref(page->self).store(name, std::memory_order_relaxed);
  page->version_word.store(0, std::memory_order_release);
  constexpr size_t kRest = offsetof(PageHeader, max_removed_vid);
  std::memset(reinterpret_cast<std::byte*>(page) + kRest, 0, sizeof(PageHeader) - kRest);
  metrics_->pages_allocated.add();
  return page;
}

void PageAllocator::give_back(PageHeader* page) {
  DCHECK(page->volatile_self().node() == pool_->node());
  DCHECK(page->check == 0);  // the page is not retired
  cache(page->volatile_self().index());
}

void PageAllocator::cache(uint32_t index) {
  if (cached_count_ == cached_.size()) {
    cached_count_ -= PagePool::kBatchPages;
    pool_->give(cached_.data() + cached_count_, PagePool::kBatchPages);
  }
  DCHECK(cached_count_ < cached_.size());
  cached_[cached_count_++] = index;
}

void PageAllocator::retire(PageHeader* page) {
  // Fence: in every thread's view the unlinking stores come before the load of the epoch. A thread
  // that begins in a later epoch cannot find the page any more.
  full_fence();
  DCHECK(page->check == 0);  // a page is retired once
  page->check = view_->control->epochs.current.load(std::memory_order_seq_cst);
  page->next_retired = 0;
  const VolatilePointer self = page->volatile_self();
  DCHECK(view_->resolve(self) == page);
  DCHECK(retired_head_.is_null() == (retired_count_ == 0));
  if (retired_head_.is_null()) {
    retired_head_ = self;
  } else {
    PageHeader* last = view_->resolve(retired_tail_);
    DCHECK(last->next_retired == 0 && last->check <= page->check);  // in order of epochs
    last->next_retired = self.index();
    last->next_retired_node = static_cast<uint8_t>(self.node());
  }
  retired_tail_ = self;
  ++retired_count_;
  metrics_->pages_retired.add();
}

/// Returns the page after a retired page in the list, or null. The name of a retired page never
/// changes, so the header of the next page completes the link.
VolatilePointer PageAllocator::next_retired(const PageHeader& page) const {
  if (page.next_retired == 0) return {};
  const std::byte* const next =
      view_->pool[page.next_retired_node] + uint64_t{page.next_retired} * kPageBytes;
  const auto& header = *reinterpret_cast<const PageHeader*>(next);
  // The list is in the order of epochs, and `take` clears the epoch: no page of the list is in use.
  DCHECK(header.check != 0 && header.check >= page.check);
  return header.volatile_self();
}

void PageAllocator::recycle() {
  // Acquire pairs with the coordinator's release: the coordinator has read every begin epoch.
  recycle(view_->control->epochs.oldest_begin.load(std::memory_order_acquire));
}

void PageAllocator::recycle(uint64_t oldest_begin) {
  while (!retired_head_.is_null()) {
    PageHeader* page = view_->resolve(retired_head_);
    if (page->check >= oldest_begin) return;
    const VolatilePointer self = retired_head_;
    const VolatilePointer next = next_retired(*page);
    if (self.node() == pool_->node()) {
      cache(self.index());
    } else {
      if (!pool_->free_remote(self)) return;
      metrics_->remote_frees.add();
    }
    DCHECK(retired_count_ != 0);
    retired_head_ = next;
    --retired_count_;
  }
  DCHECK(retired_count_ == 0);
  retired_tail_ = VolatilePointer();
}

void PageAllocator::flush() {
  if (cached_count_ != 0) {
    pool_->give(cached_.data(), cached_count_, is_demand_ ? std::min(fresh_, cached_count_) : 0);
  }
  fresh_ = 0;
  cached_count_ = 0;
}

}  // namespace atolldb
