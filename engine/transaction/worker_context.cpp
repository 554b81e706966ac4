#include "engine/transaction/worker_context.h"

#include <span>
#include <utility>

#include "engine/hooks/mutants.h"
#include "engine/log/worker_log.h"
#include "engine/transaction/access_sets.h"
#include "shared/base/check.h"
#include "shared/memory/node_layout.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// A chosen page is marked after this many uses, when its line is loaded.
constexpr uint32_t kUsesUntilLoaded = 8;

WorkerId id_of(uint32_t node, uint32_t ordinal) {
  CHECK(node < kMaxNodes && ordinal <= 0xff);
  return static_cast<WorkerId>((node << 8) | ordinal);
}

LockCode code_of(WorkerId id) { return fault::worker_codes_from_zero ? id : lock_code(id); }

}  // namespace

uint64_t TransactionLimits::local_bytes() const {
  return log_offset() + WorkerLog::bytes(log_buffer);
}

uint64_t TransactionLimits::log_offset() const {
  const uint64_t bytes = uint64_t{write_set} * sizeof(WriteEntry);
  return (bytes + kLogBlockBytes - 1) / kLogBlockBytes * kLogBlockBytes;
}

WorkerContext::WorkerContext(const ClusterView& view, PagePool& pool, uint32_t node,
                             uint32_t ordinal, WorkerMetrics& metrics, uint32_t write_set_capacity)
    : view_(&view),
      node_(node),
      slot_(&view.shared[node]->slot(ordinal)),
      metrics_(&metrics),
      locker_(view.lock_space, id_of(node, ordinal), code_of(id_of(node, ordinal)),
              view.control->state, failed_from()),
      pages_(view, pool, metrics),
      epoch_(&view.control->epochs.current),
      use_random_(0x9e3779b9u ^ ((node << 8) | ordinal)),  // a different value for each worker
      early_locks_(locker_) {
  frame_wait_.state = &view.control->state;
  frame_wait_.epoch = epoch_;
  frame_wait_.waits = &metrics.frame_stalls;
  frame_wait_.before_wait = [](void* self) {
    static_cast<WorkerContext*>(self)->release_early_locks();
  };
  frame_wait_.waiter = this;
  CHECK(write_set_capacity <= kMaxWriteSet);
  CHECK(ordinal < view.shared[node]->slot_count);
}

void WorkerContext::enter() {
  const EpochBlock& epochs = view_->control->epochs;
  const uint64_t epoch = epochs.current.load(std::memory_order_acquire);
  DCHECK(slot_->in_commit_epoch.load(std::memory_order_relaxed) == 0);
  if (epoch != begin_epoch_) {
    DCHECK(begin_epoch_ == kIdleEpoch || begin_epoch_ < epoch);
    mark_chosen_page();
    // seq_cst exchange, once per epoch: the begin epoch must be published before any pointer is
    // loaded (R9). Pointers are loaded with acquire, so by the memory model only a fence keeps
    // these loads after the exchange. The fence pairs with the one in PageAllocator::retire, before
    // the retire epoch is loaded.
    slot_->begin_epoch.exchange(epoch, std::memory_order_seq_cst);
    full_fence();
    begin_epoch_ = epoch;
    forget_pages();
  }
  if (snapshots_ != nullptr) snapshots_->leave();
  // Acquire pairs with the coordinator's release: before that, the coordinator has loaded every
  // begin epoch.
  const uint64_t oldest = epochs.oldest_begin.load(std::memory_order_acquire);
  if (oldest != recycled_at_ || fault::reuse_without_grace) {
    recycled_at_ = oldest;
    pages_.recycle(fault::reuse_without_grace ? epoch : oldest);
  }
}

void WorkerContext::raise_dirty_epoch(uint64_t epoch) {
  std::atomic<uint64_t>& dirty = view_->shared[node_]->dirty_epoch;
  DCHECK(epoch != 0 && epoch <= kMaxEpoch);
  uint64_t seen = dirty.load(std::memory_order_relaxed);
  // seq_cst, and before the in-commit epoch is cleared. So a logger or coordinator that sees the
  // epoch closed also sees it as dirty (R27).
  while (seen < epoch && !dirty.compare_exchange_weak(seen, epoch, std::memory_order_seq_cst,
                                                      std::memory_order_relaxed)) {
  }
}

/// Returns a view without storages if the database has had no commit yet, or null.
const SnapshotView* WorkerContext::empty_snapshot() const {
  // Epoch 0, because no commit has epoch 0. Snapshot id 0 in the worker's slot protects no files,
  // because no file has this id.
  static const SnapshotView empty(0, 0, {});
  const ControlSegment& control = *view_->control;
  // Acquire pairs with the release of the state: the coordinator stores `began_empty` before it.
  const auto state = static_cast<ClusterState>(control.state.load(std::memory_order_acquire));
  if (state != ClusterState::running) return nullptr;
  if (control.began_empty.load(std::memory_order_relaxed) == 0) return nullptr;
  // Every commit that precedes this load has made its node dirty (R27). So if a client knows of a
  // commit, this load finds the node dirty, and the client waits for a snapshot with that commit.
  const auto nodes = std::span(view_->shared).first(view_->node_count);
  const bool is_empty = latest_dirty_epoch(nodes) == 0;
  return is_empty || fault::empty_snapshot_after_commits ? &empty : nullptr;
}

/// Loads the line of the chosen page first. A later use stores the bit, so that no use waits for
/// the line.
void WorkerContext::choose_page_to_mark(PageHeader* page) {
  if (page_to_mark_ != nullptr) return mark_chosen_page();
  __builtin_prefetch(page);
  page_to_mark_ = page;
  uses_until_choice_ = kUsesUntilLoaded;
}

/// Also called before the begin epoch ends that protects the page. Chooses a random distance to the
/// next page (xorshift). With a constant distance, repetitive work would always mark the same
/// pages.
void WorkerContext::mark_chosen_page() {
  PageHeader* page = std::exchange(page_to_mark_, nullptr);
  if (page == nullptr) return;
  DCHECK(use_random_ != 0);
  use_random_ ^= use_random_ << 13;
  use_random_ ^= use_random_ >> 17;
  use_random_ ^= use_random_ << 5;
  static_assert(kUsesUntilLoaded < kUsesPerReferenceBit);
  // The uses that are left until the page was to be marked count, too.
  uses_until_choice_ += 1 + use_random_ % (2 * (kUsesPerReferenceBit - kUsesUntilLoaded) - 1);
  // The page header may be in the memory of another node, and a look-up in an array needs nothing
  // else of that cache line. So the bit is read only once in kUsesPerReferenceBit uses, and written
  // once between two snapshots. Relaxed: the bit is only a hint.
  if (page->reference_bit.load(std::memory_order_relaxed) == 0) {
    page->reference_bit.store(1, std::memory_order_relaxed);
  }
}

/// Relaxed: the counter only affects where later writes go. If the slot belongs to another storage
/// now, that storage has a few pages too many.
void WorkerContext::publish_copied_pages() {
  if (copied_pages_ == 0) return;
  view_->control->storage(copied_storage_)
      .copied_pages.fetch_add(copied_pages_, std::memory_order_relaxed);
  copied_pages_ = 0;
}

void WorkerContext::leave() {
  DCHECK(slot_->in_commit_epoch.load(std::memory_order_relaxed) == 0);
  mark_chosen_page();
  // seq_cst pairs with the coordinator's scan of the slots: all page reads stay before this store.
  slot_->begin_epoch.store(kIdleEpoch, std::memory_order_seq_cst);
  begin_epoch_ = kIdleEpoch;
  if (snapshots_ != nullptr) snapshots_->leave();
  forget_pages();
  pass_.give_back();
}

/// Clears the memos and the plan of early locks, because the begin epoch that protects their pages
/// ends (R9).
void WorkerContext::forget_pages() {
  if (!fault::keep_memo) memo_.clear();
  tombstone_runs_.clear();
  if (!fault::keep_early_plan) early_locks_.discard_plan();
}

}  // namespace atolldb
