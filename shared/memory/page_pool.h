// A node's volatile page pool, and the per-thread allocator that takes, retires and recycles pages
// (R9).
//
// Only threads of the owner take pages from a pool. A retired page stays readable until every
// thread that may still read it has begun a later epoch. Then it returns to the cache of the
// retiring thread. A page of another node returns to its owner through a return ring.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "shared/memory/cluster_view.h"
#include "shared/memory/worker_metrics.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

/// Start of the pool segment. The free stack (one uint32 per page) follows. The two take the first
/// pages of the segment, so page index 0 is never allocated.
struct PoolControl {
  SegmentHeader header;
  FutexLock lock;  // taken only by threads of the owner, once per batch of pages
  uint32_t spare;
  uint64_t page_count;  // pages in the segment, including those of this control block
  uint64_t first_page;
  std::atomic<uint64_t> free_count;  // changed under `lock`, read by any thread
};

/// The owner's handle of its pool. One per node process, shared by the node's threads.
class PagePool {
 public:
  /// Number of pages that move between a thread's cache and the pool at once.
  static constexpr uint32_t kBatchPages = 32;

  /// While there is a limit for pages (NodeShared::page_limit), each worker takes about this many
  /// batches per second, of at least kFewestPages. So it pays, and perhaps waits, for little at
  /// once.
  static constexpr uint64_t kLimitedBatchesPerS = 100;
  static constexpr uint32_t kFewestPages = 4;

  /// Writes control block and free stack. REQUIRES: the `bytes` bytes at `base` are zero.
  static void format(std::byte* base, uint64_t bytes);

  PagePool(const ClusterView& view, uint32_t node);

  /// Takes up to `count` page indexes. Collects remote frees if too few are free, or if there is a
  /// limit. Returns the number of pages taken; 0: the pool is exhausted. `is_demand`: counts them
  /// in NodeShared::pages_taken.
  uint32_t grab(uint32_t* indexes, uint32_t count, bool is_demand = true);
  /// Returns how many pages a thread should take at once: kBatchPages, or fewer under a limit.
  uint32_t batch_pages() const;
  /// `unused`: number of these pages that were not used since they were taken.
  void give(const uint32_t* indexes, uint32_t count, uint32_t unused = 0);
  /// Moves all remote frees from the return rings to the free stack.
  void collect_returns();

  /// Returns a foreign page to its owner. Returns false if the ring is full; the caller then keeps
  /// the page.
  bool free_remote(VolatilePointer page);

  uint32_t node() const { return node_; }
  uint64_t page_count() const { return control_->page_count - control_->first_page; }
  uint64_t free_count() const { return control_->free_count.load(std::memory_order_relaxed); }

 private:
  uint32_t* free_stack() const { return reinterpret_cast<uint32_t*>(control_ + 1); }
  bool is_limited() const;
  void collect_returns_locked();
  void count_taken_locked(uint64_t pages);
  void push_locked(uint32_t index);
  void set_free_locked(uint64_t count);

  const ClusterView* view_;
  uint32_t node_;
  PoolControl* control_;
  // One lock for each node that owns a pool. A return ring has a single producer, so the threads of
  // this process take turns.
  std::array<FutexLock, kMaxNodes + 1> send_locks_{};
};

/// Page allocator of one thread. Not shared between threads. Allocates no memory after
/// construction.
class PageAllocator {
 public:
  PageAllocator(const ClusterView& view, PagePool& pool, WorkerMetrics& metrics)
      : view_(&view), pool_(&pool), metrics_(&metrics) {}
  /// From now on, taken pages are not counted as the demand of transactions
  /// (NodeShared::pages_taken). For installers: each page that they take replaces others.
  void replace_only() { is_demand_ = false; }
  PageAllocator(const PageAllocator&) = delete;
  PageAllocator& operator=(const PageAllocator&) = delete;
  ~PageAllocator() { flush(); }

  /// Ensures that the next `count` (<= kMaxReserve) calls of `take` succeed. Returns false if the
  /// pool is exhausted. Called before taking locks (R23).
  bool reserve(uint32_t count);
  /// Returns a page of this node, or null if the pool is exhausted. `self` has the page's new name,
  /// and all other header bytes are zero. The rest of the page has arbitrary content.
  PageHeader* take();
  /// Gives back a page from `take`. REQUIRES: no other thread ever saw the page.
  void give_back(PageHeader* page);
  /// Queues a page for recycling after its grace period. Includes the fence of R9. REQUIRES: the
  /// caller has unlinked the page.
  void retire(PageHeader* page);
  /// Recycles the pages whose grace period has ended. Called between transactions, after the oldest
  /// begin epoch has changed.
  void recycle();
  /// Recycles the pages retired before `oldest_begin`. The caller has loaded this epoch with
  /// acquire.
  void recycle(uint64_t oldest_begin);
  /// Returns the cached pages to the pool. Called before blocking, and at exit.
  void flush();

  /// Returns whether about a batch of pages was used that is not yet subtracted from the node's
  /// page budget (pay_for_pages).
  bool owes_pages() const { return unpaid_ >= batch_; }
  uint32_t take_unpaid() { return std::exchange(unpaid_, 0u); }
  uint64_t retired_count() const { return retired_count_; }
  /// Returns the number of free pages of the node's pool, without the caches of threads. Collects
  /// remote frees first.
  uint64_t free_in_pool();
  static constexpr uint32_t kMaxReserve = PagePool::kBatchPages;

 private:
  void cache(uint32_t index);

  const ClusterView* view_;
  PagePool* pool_;
  WorkerMetrics* metrics_;
  std::array<uint32_t, PagePool::kBatchPages * 3> cached_{};
  uint32_t cached_count_ = 0;
  bool is_demand_ = true;
  uint32_t fresh_ = 0;   // cached pages that came from the pool; the others were recycled here
  uint32_t unpaid_ = 0;  // pages that were used
  uint32_t batch_ = PagePool::kBatchPages;  // size of the latest batch
  // Intrusive queue through PageHeader::next_retired, oldest first.
  VolatilePointer retired_head_;
  VolatilePointer retired_tail_;
  uint64_t retired_count_ = 0;
};

}  // namespace atolldb
