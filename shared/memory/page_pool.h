// A node's volatile page pool and each thread's way to take, retire and recycle pages (R9).
//
// Only threads of the owner take pages from a pool. A retired page stays readable until every
// thread that may still look at it has begun a later epoch; then it goes back to the retiring
// thread's cache, or, when another node owns it, home through a return ring.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/memory/cluster_view.h"
#include "shared/metrics/worker_metrics.h"
#include "shared/sync/futex_lock.h"

namespace atolldb {

/// Start of the pool segment. The free stack (one uint32 per page) follows; both take the first
/// pages, so that page index 0 is never handed out.
struct PoolControl {
  SegmentHeader header;
  FutexLock lock;  // owner's threads only, once per batch of pages
  uint32_t spare;
  uint64_t page_count;  // pages in the segment, those of this control block included
  uint64_t first_page;
  std::atomic<uint64_t> free_count;  // changed under `lock`, read by anybody
};

/// The owner's handle of its pool; one per node process, shared by the node's threads.
class PagePool {
 public:
  /// Pages that move between a thread's cache and the pool in one go.
  static constexpr uint32_t kBatchPages = 32;

  /// Writes control block and free stack into zeroed memory of `bytes` bytes.
  static void format(std::byte* base, uint64_t bytes);

  PagePool(const ClusterView& view, uint32_t node);

  /// Takes up to `count` page indexes; fetches pages that came home when it runs short. Returns
  /// how many it got: 0 = exhausted.
  uint32_t grab(uint32_t* indexes, uint32_t count);
  void give(const uint32_t* indexes, uint32_t count);
  /// Moves everything that came home into the free stack.
  void collect_returns();

  /// Sends a foreign page home. False when the ring is full: the caller keeps the page.
  bool send_home(VolatilePointer page);

  uint32_t node() const { return node_; }
  uint64_t page_count() const { return control_->page_count - control_->first_page; }
  uint64_t free_count() const { return control_->free_count.load(std::memory_order_relaxed); }

 private:
  uint32_t* free_stack() const { return reinterpret_cast<uint32_t*>(control_ + 1); }
  void collect_returns_locked();
  void push_locked(uint32_t index);
  void set_free_locked(uint64_t count);

  const ClusterView* view_;
  uint32_t node_;
  PoolControl* control_;
  // Producers of this process for each owner's ring take turns (the ring is single producer).
  std::array<FutexLock, kMaxNodes + 1> send_locks_{};
};

/// One thread's pages. Not shared between threads; allocates nothing after construction.
class PageAllocator {
 public:
  PageAllocator(const ClusterView& view, PagePool& pool, WorkerMetrics& metrics)
      : view_(&view), pool_(&pool), metrics_(&metrics) {}
  PageAllocator(const PageAllocator&) = delete;
  PageAllocator& operator=(const PageAllocator&) = delete;
  ~PageAllocator() { flush(); }

  /// Makes sure that the next `count` (<= kMaxReserve) calls of `take` succeed. Call it before
  /// taking locks (R23). False: the pool is exhausted.
  bool reserve(uint32_t count);
  /// A page of the own node with `self` set to its new name and all other bytes of the header
  /// zero; the rest is what a previous life left. Null: exhausted.
  PageHeader* take();
  /// Gives back a page from `take` that nobody else ever saw.
  void give_back(PageHeader* page);
  /// The page was unlinked by the caller; it is recycled after its grace. Fences (R9).
  void retire(PageHeader* page);
  /// Recycles what is past its grace. Call between transactions, when the oldest begin epoch
  /// changed.
  void recycle();
  /// The same for pages retired before epoch `oldest_begin`, which the caller has loaded (acquire).
  void recycle(uint64_t oldest_begin);
  /// Hands the cache to the pool (before blocking, at exit).
  void flush();

  uint64_t retired_count() const { return retired_count_; }
  /// Free pages of the node's pool, without those in the caches of threads. Fetches what came home.
  uint64_t free_in_pool();
  static constexpr uint32_t kMaxReserve = PagePool::kBatchPages;

 private:
  void cache(uint32_t index);

  const ClusterView* view_;
  PagePool* pool_;
  WorkerMetrics* metrics_;
  std::array<uint32_t, PagePool::kBatchPages * 3> cached_{};
  uint32_t cached_count_ = 0;
  // Intrusive queue through PageHeader::next_retired, oldest first.
  VolatilePointer retired_head_;
  VolatilePointer retired_tail_;
  uint64_t retired_count_ = 0;
};

}  // namespace atolldb
