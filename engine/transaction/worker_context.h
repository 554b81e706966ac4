// One thread's view of the engine: its slot, locks, pages, metrics and hints.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/snapshot/published_snapshots.h"
#include "engine/snapshot/snapshot_cache.h"
#include "engine/transaction/early_locks.h"
#include "engine/transaction/hint_queue.h"
#include "engine/transaction/hot_records.h"
#include "engine/transaction/page_directory.h"
#include "engine/transaction/page_memo.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/page_pool.h"
#include "shared/memory/worker_metrics.h"
#include "shared/sync/mcs_lock.h"
#include "shared/sync/run_gate.h"

namespace atolldb {

/// Capacities of the access sets. An overflow is `transaction_too_large`.
struct TransactionLimits {
  uint32_t read_set = 32768;
  uint32_t write_set = 8192;  // at most kMaxWriteSet
  uint32_t pointer_set = 1024;
  uint32_t page_version_set = 4096;
  uint64_t log_buffer = uint64_t{16} << 20;  // bytes
  bool is_logged = false;                    // a logger writes the log records

  /// Bytes of the node's `local` segment that one worker needs. The write set comes first, then the
  /// log buffer at log_offset(). Both values are multiples of kLogBlockBytes.
  uint64_t local_bytes() const;
  uint64_t log_offset() const;
};

/// Returns the maximum number of pages that a scan reads ahead if its end is not near. `visited`:
/// number of cold pages that the scan has visited so far. The distance begins with one page and
/// doubles with each page that the scan reaches, so a short scan reads few pages that it does not
/// need. Together with the page that the scan waits for, they are at most kPagesPerRead.
constexpr uint32_t scan_distance(uint32_t visited) {
  return std::min(1u << std::min(visited, 16u), kPagesPerRead - 1);
}

class WorkerContext {
 public:
  WorkerContext(const WorkerContext&) = delete;
  WorkerContext& operator=(const WorkerContext&) = delete;
  /// `ordinal` is the number of the slot: workers first, then auxiliary threads.
  WorkerContext(const ClusterView& view, PagePool& pool, uint32_t node, uint32_t ordinal,
                WorkerMetrics& metrics, uint32_t write_set_capacity);

  const ClusterView& view() const { return *view_; }
  uint32_t node() const { return node_; }
  WorkerId id() const { return locker_.self(); }
  WorkerSlot& slot() { return *slot_; }
  WorkerMetrics& metrics() { return *metrics_; }
  McsLocker& locker() { return locker_; }
  EarlyLocks& early_locks() { return early_locks_; }
  const EarlyLocks& early_locks() const { return early_locks_; }
  HotRecords& hot_records() { return hot_records_; }
  /// Releases the early locks of the transaction. Returns false if it holds none. Called before the
  /// worker waits for a lock out of their order, for a device, or for an epoch (R105).
  bool release_early_locks() {
    if (!early_locks_.holds_any() || fault::early_locks_over_waits) return false;
    early_locks_.release();
    return true;
  }
  PageAllocator& pages() { return pages_; }
  HintQueue& hints() { return hints_; }
  PageMemo& memo() { return memo_; }
  TombstoneRunMemo& tombstone_runs() { return tombstone_runs_; }
  AddWindow& add_window() { return add_window_; }
  /// Sets the reader for the node's cache of snapshot pages. REQUIRES: no transaction has begun;
  /// `snapshots` outlives the context.
  void use_snapshots(SnapshotReader& snapshots) {
    snapshots_ = &snapshots;
    frame_wait_.pass = &pass_;
    snapshots.use_limits(frame_wait_);
  }
  /// Sets the node's directory of border pages of hash storages. REQUIRES: no transaction has
  /// begun; `directory` outlives the context; null: hash storages use the memo, as Master-trees do.
  void use_directory(PageDirectory* directory) { directory_ = directory; }
  PageDirectory* directory() const { return directory_; }
  /// Logs updates of parts of a tree's record as a whole version, if the record is not longer than
  /// `most_bytes` (R107). REQUIRES: no transaction has begun. Default: 0, no record.
  void use_whole_versions(uint32_t most_bytes) { whole_version_bytes_ = most_bytes; }
  uint32_t whole_version_bytes() const { return whole_version_bytes_; }
  /// Sets the gate that limits how many workers run at the same time. REQUIRES: no transaction has
  /// begun; `gate` outlives the context; null: none.
  void use_gate(RunGate* gate) { pass_.use(gate); }
  /// Waits until the worker may run a transaction. REQUIRES: no transaction is active.
  void enter_gate() {
    if (pass_.try_enter()) [[likely]]
      return;
    DCHECK(slot_->in_commit_epoch.load(std::memory_order_relaxed) == 0);
    leave();
    metrics_->gate_waits.add();
    pass_.wait();
  }
  /// Does nothing if the worker is in no gate.
  void leave_gate() { pass_.leave(); }
  RunGate::Pass& pass() { return pass_; }
  /// Sets a function that the thread calls every few milliseconds while it waits for pages between
  /// two transactions. Null: none. A job uses it to learn soon which commits are durable. REQUIRES:
  /// the function begins no transaction, and does not throw.
  void set_wait_hook(std::function<void()> hook) { wait_hook_ = std::move(hook); }
  void call_wait_hook() const {
    if (wait_hook_) wait_hook_();
  }
  /// Sets the snapshots that transactions may begin with. REQUIRES: `published` outlives the
  /// context.
  void use_published(const PublishedSnapshots& published) { published_ = &published; }
  /// Announces and returns the snapshot with this id, or the newest one for id 0. Returns null if
  /// there is none. Before the first commit of a database the newest snapshot is the empty state
  /// (R62).
  const SnapshotView* begin_snapshot(uint32_t id) {
    if (published_ == nullptr) return nullptr;
    const SnapshotView* view = published_->use(*slot_, id);
    return view == nullptr && id == 0 ? empty_snapshot() : view;
  }
  /// Returns the snapshots that this thread's transactions may read, or null if they read none.
  const PublishedSnapshots* published() const { return published_; }
  void end_snapshot() { PublishedSnapshots::release(*slot_); }
  /// Loads a snapshot page. It is valid until the next call; see SnapshotReader::get. REQUIRES:
  /// use_snapshots was called.
  Status snapshot_page(SnapshotPointer pointer, const PageHeader*& page) {
    CHECK(snapshots_ != nullptr);
    metrics_->snapshot_reads.add();
    return snapshots_->get(pointer, page);
  }
  /// Loads the child at `link`, which lies in the page loaded last (SnapshotReader::get_child).
  /// REQUIRES: use_snapshots was called.
  Status snapshot_child(DualPointer& link, const PageHeader*& page) {
    CHECK(snapshots_ != nullptr);
    metrics_->snapshot_reads.add();
    return snapshots_->get_child(link, page);
  }
  /// Returns a snapshot page with the validity of snapshot_page, or null if the cache lacks it. The
  /// caller then loads it, which counts the read. REQUIRES: use_snapshots was called.
  const PageHeader* find_snapshot_page(SnapshotPointer pointer) {
    CHECK(snapshots_ != nullptr);
    const PageHeader* page = snapshots_->find(pointer);
    if (page != nullptr) [[likely]]
      metrics_->snapshot_reads.add();
    return page;
  }
  /// Does the same for the child at `link`, which lies in the page loaded last. REQUIRES: `pointer`
  /// is the snapshot word of `link`; use_snapshots was called.
  const PageHeader* find_snapshot_child(DualPointer& link, SnapshotPointer pointer) {
    CHECK(snapshots_ != nullptr);
    const PageHeader* page = snapshots_->find_child(link, pointer);
    if (page != nullptr) [[likely]]
      metrics_->snapshot_reads.add();
    return page;
  }
  /// Reads missing pages into the cache at the same time; see SnapshotReader::read_together. Does
  /// nothing if the thread reads no snapshots. Returns the number of pages read.
  uint32_t read_snapshot_pages(std::span<const SnapshotPointer> pages) {
    return snapshots_ == nullptr ? 0 : snapshots_->read_together(pages);
  }
  /// Returns whether this thread should search for missing snapshot pages; see
  /// SnapshotReader::expects_misses.
  bool expects_snapshot_misses() { return snapshots_ != nullptr && snapshots_->expects_misses(); }
  /// Returns the probable address of a child, for prefetches only, or null if it is unknown.
  /// REQUIRES: `link` lies in the page loaded last; use_snapshots was called.
  const PageHeader* guess_snapshot_child(const DualPointer& link) const {
    DCHECK(snapshots_ != nullptr);
    return snapshots_->guess_child(link);
  }
  /// Returns the cache round of this thread. While it stays the same, snapshot pages that were
  /// loaded in it stay at their addresses (R39). REQUIRES: use_snapshots was called.
  uint64_t snapshot_round() const { return snapshots_->round(); }
  /// Enters the current cache round and returns it. REQUIRES: use_snapshots was called.
  uint64_t enter_snapshots() { return snapshots_->enter(); }
  /// Ends the cache round at the end of an engine call that has read snapshot pages (R57).
  /// REQUIRES: use_snapshots was called.
  void leave_snapshots() { snapshots_->leave_call(); }
  /// Sets the epoch at which the thread's current work must end (R20). kMaxEpoch: no limit.
  void set_deadline(uint64_t epoch) { frame_wait_.deadline_epoch = epoch; }
  uint64_t deadline_epoch() const { return frame_wait_.deadline_epoch; }
  /// Limits each wait for a frame of the cache to kFramePatience, because the thread runs
  /// transactions. After that time the transaction is retried (`run`).
  void be_impatient() { frame_wait_.patience = kFramePatience; }

  /// Returns true if this thread holds the lock.
  bool holds(const McsWord& lock) const { return locker_.holds(lock); }

  uint64_t current_epoch() const { return epoch_->load(std::memory_order_relaxed); }
  bool cluster_failed() const {
    return view_->control->state.load(std::memory_order_acquire) >= failed_from();
  }
  /// Reserves `count` pages, so that the thread can take them without waiting. Called before any
  /// lock is taken (R23). Returns false if the pool is exhausted.
  bool reserve_pages(uint32_t count) { return fault::pages_under_locks || pages_.reserve(count); }

  /// Publishes the begin epoch if the current epoch has changed since the last call (R9). Recycles
  /// retired pages if the oldest begin epoch has changed. Called before any pointer is loaded.
  void enter();
  /// Declares that this thread holds no page reference, and gives back a place that it keeps in the
  /// gate between transactions. Called before the thread blocks.
  void leave();

  /// Marks the node as dirty in `epoch`, because a commit of that epoch wrote records (R27).
  /// REQUIRES: the in-commit epoch is not cleared yet.
  void record_dirty(uint64_t epoch) {
    DCHECK(slot_->in_commit_epoch.load(std::memory_order_relaxed) != 0);
    if (epoch == dirty_epoch_) return;
    DCHECK(epoch > dirty_epoch_);
    dirty_epoch_ = epoch;
    raise_dirty_epoch(epoch);
  }

  void count_access(uint32_t node) {
    (node == node_ ? metrics_->local_accesses : metrics_->remote_accesses).add();
  }
  PageHeader* resolve(VolatilePointer pointer) {
    count_access(pointer.node());
    return view_->resolve(pointer);
  }
  /// Counts a use of a volatile page of records. At random, on average once in kUsesPerReferenceBit
  /// uses by this worker, sets the page's reference bit (`reference_bit`,
  /// soc/installer/drop_policy.h). So a page that is used often almost surely gets the bit, and a
  /// page of a single scan rarely.
  void count_use(PageHeader* page) {
    DCHECK(page->level == 0 && uses_until_choice_ != 0);
    if (--uses_until_choice_ == 0) [[unlikely]]
      choose_page_to_mark(page);
  }
  /// Counts operations on a storage. The counter belongs to this thread.
  void count_operations(uint32_t storage_id, uint64_t operations) const {
    metrics_->storage_operations[storage_id % kMaxStorages].add(operations);
  }
  /// Counts a snapshot page that was copied into memory (StorageControl::copied_pages).
  void count_copied_page(uint32_t storage_id) {
    if (storage_id != copied_storage_ || copied_pages_ == kCopiedPagesAtOnce)
      publish_copied_pages();
    copied_storage_ = storage_id;
    ++copied_pages_;
  }
  UniversalName name_of(const void* address) const {
    const PageHeader* page = page_of(address);
    DCHECK(page->is_snapshot == 0);
    return UniversalName::make(page->volatile_self(),
                               reinterpret_cast<uintptr_t>(address) & (kPageBytes - 1));
  }

 private:
  static constexpr uint32_t kUsesPerReferenceBit = 32;
  /// Maximum duration of a transaction's wait for a frame of the snapshot cache. A longer wait
  /// would keep volatile pages from being reused.
  static constexpr std::chrono::milliseconds kFramePatience{20};

  void raise_dirty_epoch(uint64_t epoch);
  void publish_copied_pages();
  void forget_pages();
  const SnapshotView* empty_snapshot() const;
  void choose_page_to_mark(PageHeader* page);
  void mark_chosen_page();
  /// Returns the first of the cluster states that end every wait (R24).
  static uint32_t failed_from() {
    return fault::waits_ignore_failure ? ~uint32_t{0} : kClusterFailedFrom;
  }

  const ClusterView* view_;
  uint32_t node_;
  WorkerSlot* slot_;
  WorkerMetrics* metrics_;
  McsLocker locker_;
  PageAllocator pages_;
  HintQueue hints_;
  PageMemo memo_;
  TombstoneRunMemo tombstone_runs_;
  AddWindow add_window_;
  SnapshotReader* snapshots_ = nullptr;            // null: this thread reads no snapshot pages
  PageDirectory* directory_ = nullptr;             // null: none
  const PublishedSnapshots* published_ = nullptr;  // null: transactions here read no snapshots
  const std::atomic<uint64_t>* epoch_;             // the cluster's current epoch
  RunGate::Pass pass_;
  FrameWaitLimits frame_wait_;
  uint32_t whole_version_bytes_ = 0;
  uint64_t begin_epoch_ = kIdleEpoch;
  uint64_t dirty_epoch_ = 0;  // the latest epoch that this worker has announced
  uint64_t recycled_at_ = 0;
  uint32_t uses_until_choice_ = kUsesPerReferenceBit;  // or until the chosen page is marked
  PageHeader* page_to_mark_ = nullptr;  // a later use stores its reference bit; null: none
  // Copied pages that were not published yet, and their storage. Published together, because the
  // counter's line is shared by all workers.
  static constexpr uint32_t kCopiedPagesAtOnce = 16;
  uint32_t copied_storage_ = 0;
  uint32_t copied_pages_ = 0;
  uint32_t use_random_;  // state of a xorshift generator, never 0
  std::function<void()> wait_hook_;
  EarlyLocks early_locks_;
  HotRecords hot_records_;
};

}  // namespace atolldb
