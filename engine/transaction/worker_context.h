// One thread's view of the engine: who it is, its locks, pages, counters and hints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/mutants.h"
#include "engine/transaction/hint_queue.h"
#include "engine/transaction/vid.h"
#include "shared/limits.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/page_pool.h"
#include "shared/metrics/worker_metrics.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

/// Capacities of the access sets; overflow is `transaction_too_large`.
struct TransactionLimits {
  uint32_t read_set = 32768;
  uint32_t write_set = 8192;  // at most kMaxWriteSet
  uint32_t pointer_set = 1024;
  uint32_t page_version_set = 4096;
  uint64_t log_buffer = uint64_t{16} << 20;  // bytes

  /// Bytes of the node's `local` segment that one worker needs.
  uint64_t local_bytes() const;
};

/// MCS blocks per thread for a write set of this capacity (NodeSharedLayout::blocks_per_slot).
constexpr uint32_t lock_blocks_for(uint32_t write_set) { return write_set + 1 + kSystemLockBlocks; }

/// Border pages that this worker found lately: spares the descent for keys beside each other (the
/// lines of an order, both ends of a queue). An entry is good as long as the begin epoch is the
/// same, since no page that was found under it can be recycled; the user still checks the version,
/// and the range when it was not known.
class PageMemo {
 public:
  /// Slices [low, last] are in the page, as far as is known without having looked at it.
  struct Range {
    uint64_t low = 0;
    uint64_t last = ~uint64_t{0};
    bool is_known() const { return low != 0 || last != ~uint64_t{0}; }
    bool contains(uint64_t slice) const { return low <= slice && slice <= last; }
  };
  struct Entry {
    const void* root = nullptr;
    PageHeader* page = nullptr;
    Range range;
  };

  /// The page whose range holds the slice for sure, else one whose range is not known, or null.
  const Entry* find(const void* root, uint64_t slice) const {
    const Set& set = sets_[index(root, slice)];
    const Entry* maybe = nullptr;
    for (const Entry& entry : set.ways) {
      if (entry.root != root || !entry.range.contains(slice)) continue;
      if (entry.range.is_known()) return &entry;
      maybe = &entry;
    }
    return maybe;
  }
  void remember(const void* root, uint64_t slice, PageHeader* page, Range range) {
    Set& set = sets_[index(root, slice)];
    // What held the slice before is out of date; else the older one goes.
    uint32_t way = set.older;
    for (uint32_t i = 0; i < kWays; ++i) {
      if (set.ways[i].root == root && set.ways[i].range.contains(slice)) way = i;
    }
    set.ways[way] = {root, page, range};
    set.older = 1 - way;
  }
  void clear() { sets_.fill({}); }

 private:
  static constexpr uint32_t kSets = 128;
  static constexpr uint32_t kWays = 2;
  struct Set {
    std::array<Entry, kWays> ways;
    uint32_t older = 0;
  };
  /// Keys that share their high bits share a page more likely than others.
  static uint32_t index(const void* root, uint64_t slice) {
    const uint64_t mixed =
        (reinterpret_cast<uintptr_t>(root) ^ (slice >> 40) * 0x9e3779b97f4a7c15ull) *
        0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(mixed >> 57);
  }
  std::array<Set, kSets> sets_{};
};

/// Runs of settled dead records that this worker's scans passed: the head of a queue has one, and
/// every scan would pass it again. A run is good for the page word that it was found under, since a
/// settled dead record comes back only after that has changed (R12); like a PageMemo's, entries are
/// forgotten with the begin epoch.
class DeadRunMemo {
 public:
  struct Run {
    const PageHeader* page = nullptr;
    uint64_t page_word = 0;
    uint32_t first = 0;  // slots [first, end)
    uint32_t end = 0;
    Vid latest;  // of all of them, what an observer depends on (R15, R19)
  };
  /// The run last found in a page that maps to the same place: check page and word.
  Run& at(const PageHeader* page) {
    return runs_[(reinterpret_cast<uintptr_t>(page) / kPageBytes) % kEntries];
  }
  void clear() { runs_.fill({}); }

 private:
  static constexpr uint32_t kEntries = 64;
  std::array<Run, kEntries> runs_{};
};

class WorkerContext {
 public:
  /// `ordinal` names the slot: workers first, then auxiliary threads.
  WorkerContext(const ClusterView& view, PagePool& pool, uint32_t node, uint32_t ordinal,
                WorkerMetrics& metrics, uint32_t write_set_capacity);

  const ClusterView& view() const { return *view_; }
  uint32_t node() const { return node_; }
  WorkerId id() const { return locker_.self(); }
  WorkerSlot& slot() { return *slot_; }
  WorkerMetrics& metrics() { return *metrics_; }
  McsLocker& locker() { return locker_; }
  PageAllocator& pages() { return pages_; }
  HintQueue& hints() { return hints_; }
  PageMemo& memo() { return memo_; }
  DeadRunMemo& dead_runs() { return dead_runs_; }
  uint32_t first_system_block() const { return first_system_block_; }

  uint64_t current_epoch() const { return epoch_->load(std::memory_order_relaxed); }
  bool cluster_failed() const {
    return view_->control->state.load(std::memory_order_acquire) >= failed_from();
  }
  /// Makes sure that the next `count` pages can be taken without waiting: before any lock (R23).
  /// False: the pool is exhausted.
  bool reserve_pages(uint32_t count) {
    return mutant(Mutant::pages_under_locks) || pages_.reserve(count);
  }

  /// Publishes the begin epoch if the epoch changed since the last call (R9). Before any pointer
  /// is loaded. Recycles retired pages when grace has moved on.
  void enter();
  /// Declares that this thread holds no page reference: before blocking.
  void leave();

  void count_access(uint32_t node) {
    (node == node_ ? metrics_->local_accesses : metrics_->remote_accesses).add();
  }
  PageHeader* resolve(VolatilePointer pointer) {
    count_access(pointer.node());
    return view_->resolve(pointer);
  }
  UniversalName name_of(const void* address) const {
    const PageHeader* page = page_of(address);
    return UniversalName::make(page->volatile_self(),
                               reinterpret_cast<uintptr_t>(address) & (kPageBytes - 1));
  }

 private:
  /// States of the cluster that end every wait (R24).
  static uint32_t failed_from() {
    return mutant(Mutant::waits_ignore_failure) ? ~uint32_t{0} : kClusterFailedFrom;
  }

  const ClusterView* view_;
  uint32_t node_;
  WorkerSlot* slot_;
  WorkerMetrics* metrics_;
  McsLocker locker_;
  PageAllocator pages_;
  HintQueue hints_;
  PageMemo memo_;
  DeadRunMemo dead_runs_;
  const std::atomic<uint64_t>* epoch_;  // the cluster's
  uint32_t first_system_block_;
  uint64_t begin_epoch_ = kIdleEpoch;
  uint64_t recycled_at_ = 0;
};

}  // namespace atolldb
