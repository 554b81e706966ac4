#include "engine/transaction/run.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

void Backoff::wait(uint32_t attempt) {
  // Xorshift: only for jitter, so its quality does not matter.
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  constexpr uint32_t kMaxShift = 10;
  const uint64_t window = uint64_t{16} << std::min(attempt, kMaxShift);
  const uint64_t spins = state_ % window;
  if (attempt > 3) {
    // The worker of the conflicting transaction may be waiting for this core.
    sched_yield();
  }
  for (uint64_t i = 0; i < spins; ++i) spin_pause();
}

bool PageWait::wait(WorkerContext& worker, uint64_t deadline_epoch) {
  constexpr std::chrono::milliseconds kLookAround{2};
  const ControlSegment& control = *worker.view().control;
  // Relaxed, here and below: the value only affects how long to wait.
  uint32_t unproductive = control.unproductive_snapshots.load(std::memory_order_relaxed);
  if (end_ns_ == 0) {
    end_ns_ = now_ns() + static_cast<uint64_t>(std::chrono::nanoseconds(kPatience).count());
    unproductive_snapshots_ = unproductive;
  }
  CHECK(end_ns_ != 0);
  worker.leave();
  bool has_counted = false;
  uint64_t enough = PagePool::kPagesToContinue;
  while (!has_ended(worker, deadline_epoch)) {
    // Checked before the free pages are counted. Pages freed between the two checks are counted.
    const bool is_hopeless = no_pages_come(worker);
    // The hints of this worker may free pages, and no other thread executes them.
    if (worker.hints().is_due(worker.current_epoch())) {
      run_hints(worker);
      worker.leave();
    }
    // Gives this worker's retired and cached pages to the pool: other workers may need just these.
    worker.pages().recycle();
    worker.pages().flush();
    if (worker.pages().free_in_pool() >= enough) return true;
    enough = std::max<uint64_t>(enough / 2, PagePool::kFewestToContinue);
    if (is_hopeless) return false;
    if (!std::exchange(has_counted, true)) worker.metrics().page_stalls.add();
    worker.call_wait_hook();
    wait_on(control.unproductive_snapshots, unproductive, kLookAround);
    unproductive = control.unproductive_snapshots.load(std::memory_order_relaxed);
  }
  return false;
}

void pay_for_pages(WorkerContext& worker, uint64_t deadline_epoch) {
  const ControlSegment& control = *worker.view().control;
  NodeShared& node = *worker.view().shared[worker.node()];
  PageAllocator& allocator = worker.pages();
  const int64_t pages = allocator.owes_batch() ? allocator.take_unpaid() : 0;
  std::chrono::nanoseconds left = allocator.take_delay();
  if (pages != 0) left = max_page_delay(node);
  DCHECK(left.count() > 0);
  // One locked instruction on a line of the own node for each batch of pages, or for each delay.
  // Relaxed, here and below: the words only affect how long to wait.
  if (node.page_budget.fetch_sub(pages, std::memory_order_relaxed) >= pages) return;
  const uint64_t begin = now_ns();
  constexpr std::chrono::nanoseconds kLookAround = std::chrono::milliseconds(5);
  worker.leave();
  worker.metrics().page_delays.add();
  for (uint64_t now = begin;; now = now_ns()) {
    const uint32_t signal = node.page_signal.load(std::memory_order_relaxed);
    const int64_t budget = node.page_budget.load(std::memory_order_relaxed);
    const bool is_hopeless = control.snapshots_free_pages.load(std::memory_order_relaxed) == 0 ||
                             worker.cluster_failed() || worker.current_epoch() >= deadline_epoch;
    if (budget >= 0 || is_hopeless) break;
    const std::chrono::nanoseconds waited(static_cast<int64_t>(now - begin));
    const auto rest = std::min(left, max_delay_at_once(node, -budget)) - waited;
    if (rest.count() <= 0) {
      // The next transactions wait for the rest. So one transaction in many does not wait long for
      // pages that all of them use.
      allocator.leave_delay(std::max(left - waited, std::chrono::nanoseconds(0)));
      break;
    }
    worker.call_wait_hook();
    wait_on(node.page_signal, signal, std::min(kLookAround, rest));
  }
  worker.metrics().page_delay_ns.add(now_ns() - begin);
}

bool SnapshotWait::wait(WorkerContext& worker, uint64_t deadline_epoch) {
  ControlSegment& control = *worker.view().control;
  if (worker.published() == nullptr) return false;
  worker.leave();
  // Relaxed: the coordinator polls the word.
  const uint32_t own = control.snapshot_requests.fetch_add(1, std::memory_order_relaxed) + 1;
  for (;;) {
    // Acquire pairs with the coordinator's release. Before that release a successful attempt stores
    // the id of the snapshot.
    const uint32_t answered = control.snapshot_answered.load(std::memory_order_acquire);
    if (worker.published()->newest() != 0) return true;
    // An attempt stores the number of the last request that came before it began. If that number is
    // at least `own`, an attempt for this request has ended without a snapshot. The numbers may
    // wrap around.
    const bool has_failed = static_cast<int32_t>(answered - own) >= 0;
    // Relaxed: the value only decides whether to wait.
    const bool ends = control.snapshots_free_pages.load(std::memory_order_relaxed) == 0 ||
                      worker.cluster_failed() || worker.current_epoch() >= deadline_epoch;
    if (has_failed || ends) return false;
    wait_on(control.snapshot_answered, answered, kMaxSleep);
  }
}

bool PageWait::has_ended(const WorkerContext& worker, uint64_t deadline_epoch) const {
  return worker.cluster_failed() || worker.current_epoch() >= deadline_epoch || now_ns() >= end_ns_;
}

/// Returns whether the snapshot cache has no pages of the pool, and snapshots do not help: none
/// frees pages, or two since the start of the wait freed too few.
bool PageWait::no_pages_come(WorkerContext& worker) const {
  if (worker.pages().has_lent()) return false;
  const ControlSegment& control = *worker.view().control;
  // The second unproductive snapshot began after this transaction had started to wait, so it has
  // freed all pages that can be freed.
  constexpr uint32_t kUnproductiveSnapshots = 2;
  return control.snapshots_free_pages.load(std::memory_order_relaxed) == 0 ||
         control.unproductive_snapshots.load(std::memory_order_relaxed) - unproductive_snapshots_ >=
             kUnproductiveSnapshots;
}

}  // namespace atolldb
