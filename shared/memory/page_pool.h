// A node's volatile page pool, and the per-thread allocator that takes, retires and recycles pages
// (R9).
//
// Only threads of the owner take pages from a pool. A retired page stays readable until every
// thread that may still read it has begun a later epoch. Then it returns to the cache of the
// retiring thread. A page of another node returns to its owner through a return ring.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
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
  std::atomic<uint32_t> reclaim_signal;  // changes when lent pages must return (await_reclaim)
  uint64_t page_count;  // pages in the segment, including those of this control block
  uint64_t first_page;
  std::atomic<uint64_t> free_count;  // changed under `lock`, read by any thread
  // Pages that the node's snapshot cache uses until the pool needs them. Changed under `lock`, read
  // by any thread.
  std::atomic<uint64_t> lent_count;

  /// Returns the number of free and lent pages, with those that only installers may take
  /// (PagePool::reserved_of). Relaxed: an estimate, because other threads change it at any time.
  uint64_t available() const {
    return free_count.load(std::memory_order_relaxed) + lent_count.load(std::memory_order_relaxed);
  }
};

/// Longest delay of a transaction by the limit for pages (NodeShared::page_limit, pay_for_pages).
inline constexpr std::chrono::milliseconds kMaxPageDelay{32};
/// The same while less than 1/kScarcePart of the pool is free. Workers that wait shorter than the
/// limit asks for would take the last pages, and then all would wait for the install of a snapshot.
inline constexpr std::chrono::milliseconds kMaxScarceDelay{200};
inline constexpr uint64_t kScarcePart = 32;

/// A worker spreads a delay over several transactions: each is delayed by this time at least, and
/// by half of the time in which the limit grants the pages that the node's workers owe.
inline constexpr std::chrono::milliseconds kMinDelayAtOnce{8};

/// Returns the longest delay for the pages of one payment of a worker of this node now.
inline std::chrono::milliseconds max_page_delay(const NodeShared& node) {
  // Relaxed: the words are gauges.
  const uint64_t free = node.pages_free.load(std::memory_order_relaxed);
  const bool is_scarce = free < node.pages_total.load(std::memory_order_relaxed) / kScarcePart;
  return is_scarce ? kMaxScarceDelay : kMaxPageDelay;
}

/// Returns the longest part of such a delay before one transaction. `owed_pages`: pages that the
/// node's workers have taken beyond their budget.
inline std::chrono::nanoseconds max_delay_at_once(const NodeShared& node, int64_t owed_pages) {
  const std::chrono::milliseconds longest = max_page_delay(node);
  if (longest != kMaxPageDelay) return longest;  // few pages are left
  const auto limit = static_cast<double>(node.page_limit.load(std::memory_order_relaxed));
  const std::chrono::duration<double> granted_in(static_cast<double>(owed_pages) /
                                                 std::max(limit, 1.0));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::clamp<std::chrono::duration<double>>(granted_in / 2, kMinDelayAtOnce, longest));
}

/// The owner's handle of its pool. One per node process, shared by the node's threads.
class PagePool {
 public:
  /// Number of pages that move between a thread's cache and the pool at once.
  static constexpr uint32_t kBatchPages = 32;
  /// A transaction that waits for pages continues when this many may be taken (PageWait). Several
  /// workers wake up at once, so it is two batches at first. It falls to the second number while
  /// the transaction waits, because other transactions take pages one by one under a limit.
  static constexpr uint32_t kPagesToContinue = 2 * kBatchPages;
  static constexpr uint32_t kFewestToContinue = 8;

  /// While there is a limit for pages (NodeShared::page_limit), each worker takes about this many
  /// batches per second, of at least kFewestPages. So it pays, and perhaps waits, for little at
  /// once.
  static constexpr uint64_t kLimitedBatchesPerS = 100;
  static constexpr uint32_t kFewestPages = 1;

  /// Writes control block and free stack. REQUIRES: the `bytes` bytes at `base` are zero.
  static void format(std::byte* base, uint64_t bytes);

  PagePool(const ClusterView& view, uint32_t node);

  /// Takes up to `count` page indexes. Collects remote frees if too few are free, or if there is a
  /// limit. Returns the number of pages taken; 0: there are none. `is_demand`: leaves the
  /// reserved pages, and counts the others in NodeShared::pages_taken.
  uint32_t grab(uint32_t* indexes, uint32_t count, bool is_demand = true);
  /// Returns how many pages a thread should take at once: kBatchPages, or fewer under a limit.
  uint32_t batch_pages() const;
  /// `unused`: number of these pages that were not used since they were taken.
  void give(const uint32_t* indexes, uint32_t count, uint32_t unused = 0);
  /// Moves all remote frees from the return rings to the free stack, and publishes the gauge.
  void collect_returns();

  /// Lends up to `count` free pages to the node's snapshot cache (R81). Lends none unless
  /// `kept_pages` and a quarter more are free, and leaves `kept_pages`. Returns the number of
  /// pages. The words `self` of these pages are their names: the cache restores them before it
  /// returns the pages.
  uint32_t lend(uint32_t* indexes, uint32_t count);
  /// Takes back lent pages.
  void take_back(const uint32_t* indexes, uint32_t count);
  /// Returns whether `lend` would lend pages now. An estimate.
  bool can_lend() const;
  /// Returns how many lent pages must come back: none if `kept_pages` are free, otherwise so many
  /// that an eighth more are free. An estimate.
  uint64_t pages_to_reclaim() const;
  /// Blocks until the pool wants lent pages back, for at most ten seconds. Returns at once if
  /// `reclaim_signal` is no longer `seen`. Thread: the one that returns lent pages.
  void await_reclaim(uint32_t seen);
  uint32_t reclaim_signal() const {
    // Acquire pairs with the release in end_wait: stores before that call are visible.
    return control_->reclaim_signal.load(std::memory_order_acquire);
  }
  /// Ends a call of await_reclaim, or the next one. Thread: any.
  void end_wait();
  /// Free pages that the pool does not lend, but keeps for transactions: enough for waits to end
  /// (PageWait).
  uint64_t kept_pages() const {
    return std::max(page_count() / kKeptPart,
                    reserved_of(page_count()) + kKeptBatches * kBatchPages);
  }

  /// Returns a foreign page to its owner. Returns false if the ring is full; the caller then keeps
  /// the page.
  bool free_remote(VolatilePointer page);

  /// Returns how many pages of a pool of `pages` pages only installers may take. They need a few
  /// pages to free many. Without these, a pool that transactions have emptied would stay empty.
  static constexpr uint64_t reserved_of(uint64_t pages) {
    return pages / kReservedPart / kBatchPages * kBatchPages;
  }
  /// Returns the number of free pages that transactions may take. An estimate.
  uint64_t free_for_demand() const {
    const uint64_t free = free_count();
    return free - std::min(free, reserved_of(page_count()));
  }

  uint32_t node() const { return node_; }
  uint64_t page_count() const { return control_->page_count - control_->first_page; }
  uint64_t free_count() const { return control_->free_count.load(std::memory_order_relaxed); }
  uint64_t lent_count() const { return control_->lent_count.load(std::memory_order_relaxed); }
  /// Number of pages in the segment, and so a bound of the indexes of pages.
  uint64_t index_end() const { return control_->page_count; }
  /// Address of the page with index 0.
  uintptr_t base() const { return reinterpret_cast<uintptr_t>(view_->pool[node_]); }
  PageHeader* page(uint32_t index) const {
    DCHECK(index >= control_->first_page && index < control_->page_count);
    return reinterpret_cast<PageHeader*>(view_->pool[node_] + uint64_t{index} * kPageBytes);
  }

 private:
  static constexpr uint64_t kKeptPart = 8;        // 1 / kKeptPart of the pages is not lent
  static constexpr uint64_t kReservedPart = 128;  // 1 / kReservedPart is for installers
  static constexpr uint64_t kKeptBatches = 4;     // least number of pages that are not lent
  // Margins above kept_pages, as parts of it. Without them, the same pages would be lent and
  // reclaimed in turns.
  static constexpr uint64_t kLendMarginPart = 4;
  static constexpr uint64_t kReclaimMarginPart = 8;
  uint32_t* free_stack() const { return reinterpret_cast<uint32_t*>(control_ + 1); }
  bool is_limited() const;
  void collect_returns_locked();
  void count_taken_locked(uint64_t pages);
  void push_locked(uint32_t index);
  void set_free_locked(uint64_t count);
  void publish_available();
  void signal_reclaim_locked();

  const ClusterView* view_;
  uint32_t node_;
  PoolControl* control_;
  bool awaits_reclaim_ =
      false;  // a thread is in await_reclaim; guarded by the control block's lock
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

  /// Returns whether the next transaction must pay before it begins (pay_for_pages): about a batch
  /// of pages was used that is not yet subtracted from the node's page budget, or a part of the
  /// delay for earlier pages is left.
  bool owes_pages() const { return owes_batch() || delay_left_.count() != 0; }
  bool owes_batch() const { return unpaid_ >= batch_; }
  uint32_t take_unpaid() { return std::exchange(unpaid_, 0u); }
  void leave_delay(std::chrono::nanoseconds rest) { delay_left_ = rest; }
  std::chrono::nanoseconds take_delay() { return std::exchange(delay_left_, {}); }
  uint64_t retired_count() const { return retired_count_; }
  /// Returns the number of free pages of the node's pool that transactions may take, without the
  /// caches of threads. Collects remote frees first.
  uint64_t free_in_pool();
  /// Does the same without the remote frees, by one load of a word that all threads of the node
  /// change.
  uint64_t free_estimate() const { return pool_->free_for_demand(); }
  /// Returns whether the snapshot cache has pages of the pool. It returns them within milliseconds
  /// when free pages are few.
  bool has_lent() const { return pool_->lent_count() != 0; }
  static constexpr uint32_t kMaxReserve = PagePool::kBatchPages;

 private:
  void cache(uint32_t index);
  VolatilePointer next_retired(const PageHeader& page) const;

  const ClusterView* view_;
  PagePool* pool_;
  WorkerMetrics* metrics_;
  std::array<uint32_t, PagePool::kBatchPages * 3> cached_{};
  uint32_t cached_count_ = 0;
  bool is_demand_ = true;
  uint32_t fresh_ = 0;   // cached pages that came from the pool; the others were recycled here
  uint32_t unpaid_ = 0;  // pages that were used
  std::chrono::nanoseconds delay_left_{0};
  uint32_t batch_ = PagePool::kBatchPages;  // size of the latest batch
  // Intrusive queue through PageHeader::next_retired, oldest first.
  VolatilePointer retired_head_;
  VolatilePointer retired_tail_;
  uint64_t retired_count_ = 0;
};

}  // namespace atolldb
