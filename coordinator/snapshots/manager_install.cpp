// Installation of new snapshots in the volatile pages of the running cluster (R23, R38, R44). It
// has three steps. Pointers are set to the new snapshot. Pages that the snapshot makes unnecessary
// are dropped. Files without references are released. All steps change only volatile memory. So
// after a crash at any instant the savepoint is valid and already names the new snapshot (R37).
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "coordinator/snapshots/cold_writes.h"
#include "coordinator/snapshots/snapshot_manager.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/page_pool.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

/// Opens the files of the new snapshot on all nodes. Returns false after an error. The snapshot is
/// not installed then. Until the next snapshot, this only costs memory and disk space.
bool SnapshotManager::open_for_install(const SnapshotMetadata& snapshot) {
  const auto opened = open_readable(snapshot.files);
  if (!opened) {
    logger_->warn("snapshot {} is not installed: {}", snapshot.id, opened.error().message);
  }
  return opened.has_value();
}

/// Installs the snapshot of the job and releases older ones. A failure only costs memory and disk
/// space until the next snapshot, because all pages that a pointer may refer to stay readable.
/// REQUIRES: the files of the snapshot are open on all nodes.
void SnapshotManager::install(const Job& job, const SnapshotMetadata& snapshot) {
  CHECK(is_own_thread());
  CHECK(snapshot.id == newest_.load(std::memory_order_relaxed));
  // From here on pointers may refer to the snapshot, even if the install fails.
  kept_.add(snapshot);
  {
    // No storage changes to records until it is known which delta trees could be drained.
    const std::lock_guard guard(cold_mutex_);
    copied_pages_.clear();
  }
  const auto begun = std::chrono::steady_clock::now();
  const auto report = job_->install(
      snapshot,
      percent_to_free(config_.gleaner.pool_high_water, job.spare_at_begin - spare_pages()),
      [this](uint32_t percent) { return pool_still_low(percent); }, [this] { return idle_cpus(); },
      next_ != nullptr ? &next_->plan : nullptr);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
  if (report) has_freed_pages_ = frees_enough(*report);
  record_install(snapshot, report, took);
  if (!report) {
    logger_->warn("snapshot {} is not installed everywhere: {}: older ones stay readable",
                  snapshot.id, report.error().message);
    return;
  }
  choose_cold_writes(snapshot);
  release_kept(report->oldest_left, snapshot.id);
}

/// Returns the pages of all pools.
uint64_t SnapshotManager::pool_pages() const {
  uint64_t pages = 0;
  for (const NodeShared* node : nodes_) {
    pages += node->pages_total.load(std::memory_order_relaxed);
  }
  return pages;
}

/// Decides for each storage whether writes to cold records bring whole pages or single records into
/// memory (R76). Transactions may notice it late, because the word of each pointer decides.
void SnapshotManager::choose_cold_writes(const SnapshotMetadata& snapshot) {
  const ColdWrites choice = config_.memory.cold_writes;
  const bool fits = choice == ColdWrites::pages || fits_in_pools(snapshot, pool_pages());
  const std::lock_guard guard(cold_mutex_);
  CHECK(copied_pages_.empty());
  for (const SnapshotStorage& stored : snapshot.storages) {
    StorageControl& storage = control_.storage(stored.id);
    // The slot may belong to another storage now. Then the choice is made at the next snapshot.
    if (!is_tree(stored.type) || storage.id != stored.id) continue;
    const auto changed = job_->changed_bytes().find(stored.id);
    // Relaxed: the word orders no other access.
    const bool before = storage.uses_delta.load(std::memory_order_relaxed) != 0;
    const auto revised = revised_in_.find(stored.id);
    const ColdWritesInput input{
        .fits_in_pools = fits,
        .uses_records = before,
        .is_mixed = revised != revised_in_.end() && snapshot.base_epoch < revised->second,
        .changed_bytes = changed == job_->changed_bytes().end() ? 0 : changed->second,
        .rewritten_pages = rewritten_pages(snapshot, stored.id)};
    // A delta tree that is not drained gets nothing more where that is possible.
    const bool now =
        !job_->is_stuck(stored.id) && (choice == ColdWrites::records || prefers_records(input));
    if (!now && !fits && !job_->is_stuck(stored.id)) {
      copied_pages_[stored.id] = storage.copied_pages.load(std::memory_order_relaxed);
    }
    if (now == before) continue;
    storage.uses_delta.store(now ? 1 : 0, std::memory_order_relaxed);
    logger_->info(
        "storage {}: writes to cold records now bring {} into memory: the last snapshot wrote {} "
        "pages for changed records of {} bytes",
        stored.name, now ? "single records" : "their pages", input.rewritten_pages,
        input.changed_bytes);
  }
}

/// Between two snapshots, changes storages to records if their writes copy too many pages
/// (copies_too_many_pages). Thread: page-flow.
void SnapshotManager::revise_cold_writes() {
  const std::lock_guard guard(cold_mutex_);
  // The counters are lines of workers on all nodes, so they are read only if a storage may change.
  // The first interval after a pause is too long, so it decides against the change.
  if (copied_pages_.empty()) return;
  uint64_t log_bytes = 0;
  for (const MetricsSegment* metrics : metrics_) {
    log_bytes += sum_counter(*metrics, &WorkerMetrics::log_bytes);
  }
  const uint64_t logged = log_bytes - std::min(log_bytes, log_bytes_);
  log_bytes_ = log_bytes;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - copied_pages_read_).count();
  copied_pages_read_ = now;
  for (auto it = copied_pages_.begin(); it != copied_pages_.end();) {
    auto& [id, before] = *it;
    StorageControl& storage = control_.storage(id);
    const uint64_t copied = storage.copied_pages.load(std::memory_order_relaxed);
    const CopiedPages counts{
        .pages = copied - std::min(copied, before), .log_bytes = logged, .seconds = seconds};
    before = copied;
    const bool is_gone = storage.id != id;
    if (!is_gone && !copies_too_many_pages(counts, pool_pages())) {
      ++it;
      continue;
    }
    if (!is_gone) {
      storage.uses_delta.store(1, std::memory_order_relaxed);
      revised_in_[id] = control_.epochs.current.load(std::memory_order_relaxed);
      logger_->info(
          "storage {}: writes to cold records now bring single records into memory: {} pages were "
          "copied in {:.1f} s, while all storages logged {} bytes",
          storage.name, counts.pages, counts.seconds, counts.log_bytes);
    }
    it = copied_pages_.erase(it);
  }
}

/// Releases the snapshots that no pointer refers to after the install of the snapshot `installed`.
/// `oldest_left`: oldest snapshot to which a pointer without a volatile page still leads.
void SnapshotManager::release_kept(uint32_t oldest_left, uint32_t installed) {
  // seq_cst: a thread that begins in a later epoch finds no pointer that was replaced.
  const uint64_t now = control_.epochs.current.load(std::memory_order_seq_cst);
  kept_.release_before(std::min(oldest_left, installed), now);
  // Waits a short time for the end of all transactions that began in epoch `now` or earlier. If
  // some still run after it, the next install removes the released snapshots from kept_.
  constexpr std::chrono::milliseconds kPatience{200};
  clock_.wait_until_begun_after(now, kPatience);
  // Acquire pairs with the clock's release: the clock has seen every begin epoch.
  kept_.forget(fault::release_files_before_begin_epochs
                   ? kMaxEpoch
                   : control_.epochs.oldest_begin.load(std::memory_order_acquire));
}

/// Returns whether the install freed a good part of a pool. A snapshot that frees less than
/// 1/kGoodPart of the smallest pool does not help for long.
bool SnapshotManager::frees_enough(const InstallReport& report) const {
  constexpr uint64_t kGoodPart = 128;
  uint64_t pages = UINT64_MAX;
  for (const NodeShared* node : nodes_) {
    pages = std::min(pages, node->pages_total.load(std::memory_order_relaxed));
  }
  return report.dropped + report.reclaimed >= std::max<uint64_t>(1, pages / kGoodPart);
}

/// Records the install for the status.
void SnapshotManager::record_install(const SnapshotMetadata& snapshot,
                                     const Result<InstallReport>& report,
                                     std::chrono::milliseconds took) {
  Json status = {{"snapshot", snapshot.id}, {"took_ms", took.count()}};
  if (report) {
    status.update({{"installed", report->installed},
                   {"unmatched", report->unmatched},
                   {"dropped", report->dropped},
                   {"dropped_hot", report->dropped_hot},
                   {"kept", report->kept},
                   {"kept_hot", report->kept_hot},
                   {"busy", report->busy},
                   {"reclaimed", report->reclaimed},
                   {"drained", report->drained},
                   {"divided", report->divided},
                   {"longest_hold_us", static_cast<double>(report->longest_hold_ns) * 1e-3}});
    const bool is_left = report->oldest_left != InstallReport::kNoSnapshot;
    status["oldest_left"] = is_left ? Json(report->oldest_left) : Json();
  } else {
    status["error"] = report.error().message;
  }
  const std::lock_guard guard(mutex_);
  install_status_ = std::move(status);
}

/// Returns whether some node has less than this percentage of its pages free.
bool SnapshotManager::pool_is_below(uint32_t free_percent) const {
  CHECK(free_percent <= 100);
  return std::ranges::any_of(nodes_, [free_percent](const NodeShared* node) {
    // Relaxed: the words are gauges.
    const uint64_t total = node->pages_total.load(std::memory_order_relaxed);
    const uint64_t free = node->pages_free.load(std::memory_order_relaxed);
    return free * 100 < total * free_percent;
  });
}

/// Returns whether the pool of some node is almost empty. Transactions then wait for pages.
bool SnapshotManager::pool_is_starved() const {
  return std::ranges::any_of(nodes_, [](const NodeShared* node) {
    // Relaxed: the words are gauges.
    const uint64_t total = node->pages_total.load(std::memory_order_relaxed);
    return node->pages_free.load(std::memory_order_relaxed) <
           PagePool::reserved_of(total) + PagePool::kPagesToContinue;
  });
}

/// Returns whether the pool is still low after the dropped pages have become free. Dropped pages
/// become free when every thread has begun after the drop. If another node dropped them, the owner
/// of the pages reclaims them with its next heartbeat, or when its pool is low. If an old
/// transaction holds the pages back, their number is unknown, and the function returns false.
bool SnapshotManager::pool_still_low(uint32_t free_percent) const {
  if (!pool_is_below(free_percent)) return false;
  constexpr auto kPatience = std::chrono::milliseconds(200);
  constexpr auto kPause = std::chrono::milliseconds(10);
  const uint64_t now = control_.epochs.current.load(std::memory_order_seq_cst);
  if (!clock_.wait_until_begun_after(now, kPatience)) return false;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (pool_is_below(free_percent)) {
    if (std::chrono::steady_clock::now() > end) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

/// Counts a snapshot that freed almost no page, and wakes the workers that wait for pages.
void SnapshotManager::record_unproductive_snapshot() {
  // Relaxed: workers use the count only to decide how long to wait.
  control_.unproductive_snapshots.fetch_add(1, std::memory_order_relaxed);
  wake(control_.unproductive_snapshots, kWakeAll);
}

}  // namespace atolldb
