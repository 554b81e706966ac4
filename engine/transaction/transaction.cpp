#include "engine/transaction/transaction.h"

#include <algorithm>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/transaction/optimistic_read.h"
#include "shared/base/check.h"
#include "shared/sync/racy_copy.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

Transaction::Transaction(WorkerContext& worker, const TransactionLimits& limits, std::byte* local)
    : worker_(&worker),
      limits_(limits),
      reads_(limits.read_set),
      pointers_(limits.pointer_set),
      pages_(limits.page_version_set),
      absences_(std::min(limits.page_version_set, kMaxAbsences)),
      words_(limits.page_version_set),
      appends_(kMaxAppends),
      write_index_(limits.write_set),
      writes_(reinterpret_cast<WriteEntry*>(local)),
      write_heads_(std::make_unique_for_overwrite<RecordHead*[]>(limits.write_set)),
      log_(local + limits.log_offset(), limits.log_buffer,
           static_cast<uint16_t>(worker.id() & 0xff), limits.is_logged) {
  CHECK(limits.write_set <= kMaxWriteSet);
  worker.be_impatient();
}

Status Transaction::begin(uint64_t deadline_epoch, TransactionMode mode) {
  if (state_ != State::idle || mode.isolation >= Isolation::count_) [[unlikely]]
    return begin_contended(deadline_epoch, mode);
  // Only a read-only transaction may name a snapshot.
  if (mode.snapshot != 0 && mode.isolation != Isolation::snapshot_read_only) {
    return Status::invalid_argument;
  }
  if (worker_->cluster_failed()) return Status::cluster_failed;
  if (!log_.has_room()) [[unlikely]] {
    const Status status = await_log_room(deadline_epoch);
    if (status != Status::ok) return status;
  }
  worker_->enter();
  clear();
  log_.begin(worker_->current_epoch());
  DCHECK(is_read_only() && reads_.empty() && snapshot_ == nullptr);
  worker_->set_deadline(deadline_epoch);
  if (worker_->current_epoch() >= deadline_epoch) return Status::deadline_exceeded;
  if (mode.isolation == Isolation::serializable) [[likely]] {
    state_ = State::serializable;
    return Status::ok;
  }
  snapshot_ = worker_->begin_snapshot(mode.snapshot);
  if (snapshot_ == nullptr) return Status::snapshot_not_found;
  state_ = mode.isolation == Isolation::snapshot ? State::snapshot : State::snapshot_read_only;
  return Status::ok;
}

Status Transaction::begin_contended(uint64_t deadline_epoch, TransactionMode mode) {
  if (is_active() || mode.isolation >= Isolation::count_) return Status::invalid_argument;
  DCHECK(state_ == State::planned);
  state_ = State::idle;
  if (worker_->hot_records().has_failed(commits_of_worker())) prefetch_reads();
  const Status status = begin(deadline_epoch, mode);
  if (status == Status::ok && is_serializable()) {
    state_ = State::contended;
    take_early_locks();
  } else {
    worker_->early_locks().discard_plan();
  }
  return status;
}

void Transaction::prefetch_reads() const {
  // The processor has room for few misses at a time, so more prefetches would only wait.
  constexpr uint32_t kMost = 64;
  for (uint32_t i = 0; i < std::min(reads_.size(), kMost); ++i)
    __builtin_prefetch(reads_[i].record);
}

void Transaction::take_early_locks() {
  EarlyLocks& locks = worker_->early_locks();
  DCHECK(is_serializable() && !locks.holds_any());
  if (locks.size() == 0) return;
  reach(SyncPoint::taking_early_locks);
  uint32_t polls = EarlyLocks::kMostPolls;
  // After the deadline every call fails, so the locks would be of no use.
  for (uint32_t i = 0; i < locks.size() && !is_past_deadline(); ++i) {
    if (locks.take(i, polls)) worker_->metrics().early_locks.add();
  }
}

void Transaction::learn_from_failure() {
  if (failed_read_ == nullptr) return;
  HotRecords& hot = worker_->hot_records();
  DCHECK(!is_active() && worker_->early_locks().size() == 0);
  const uint64_t commits = commits_of_worker();
  hot.record_abort(std::exchange(failed_read_, nullptr), commits);
  if (!hot.is_on()) return;
  state_ = State::planned;
  if (reads_.size() > kMostReadsOfShort || !hot.should_lock(commits)) return;
  for (const WriteEntry& write : planned_writes()) {
    auto* record = reinterpret_cast<RecordHead*>(worker_->view().resolve(write.record));
    if (hot.is_hot(record, commits)) plan_early_lock(record, write.record);
  }
  for (const ReadEntry& read : reads_) {
    if (hot.is_hot(read.record, commits))
      plan_early_lock(read.record, worker_->name_of(read.record));
  }
}

void Transaction::release_after(State ended) {
  if (ended == State::contended) {
    if (!fault::keep_early_locks) {
      worker_->early_locks().release();
      worker_->early_locks().discard_plan();
    }
    if (worker_->hot_records().should_check(commits_of_worker())) state_ = State::planned;
    return;
  }
  if (snapshot_ == nullptr) return;
  snapshot_ = nullptr;
  worker_->end_snapshot();
}

Status Transaction::check_snapshot(bool writes) {
  const Status status = check();
  if (status != Status::ok) return status;
  DCHECK((snapshot_ == nullptr) == is_serializable());
  if (state_ != State::snapshot_read_only) return Status::ok;
  if (writes) return Status::read_only_transaction;
  // A read-only snapshot transaction holds no volatile page, so it must not delay the reuse of
  // pages, however long it runs (R9). Relaxed: only this worker writes the word.
  const auto& begin_epoch = worker_->slot().begin_epoch;
  if (begin_epoch.load(std::memory_order_relaxed) != worker_->current_epoch()) worker_->enter();
  return Status::ok;
}

Status Transaction::await_log_room(uint64_t deadline_epoch) {
  // A waiting worker must not delay the reuse of pages (R23).
  worker_->leave();
  worker_->metrics().log_stalls.add();
  WorkerLogControl& control = log_.control();
  for (;;) {
    // seq_cst pairs with the logger's operations: either the logger sees that this worker waits, or
    // this worker sees the freed blocks.
    const uint32_t signal = control.signal.load(std::memory_order_seq_cst);
    control.waits.store(1, std::memory_order_seq_cst);
    Status status = Status::ok;
    if (!log_.has_room()) {
      if (worker_->cluster_failed()) {
        status = Status::cluster_failed;
      } else if (worker_->current_epoch() >= deadline_epoch) {
        status = Status::deadline_exceeded;
      } else {
        const RunGate::DeviceWait wait(&worker_->pass());
        wait_on(control.signal, signal, kMaxSleep);
        continue;
      }
    }
    control.waits.store(0, std::memory_order_relaxed);
    return status;
  }
}

void Transaction::clear() {
  reads_.clear();
  pointers_.clear();
  pages_.clear();
  absences_.clear();
  words_.clear();
  appends_.clear();
  filter_.fill(0);
  if (writes_size_ != 0) write_index_.clear();
  writes_size_ = 0;
  add_count_ = 0;
  erases_ = false;
  writes_blindly_ = false;
  reservations_ = 0;
  plan_changes_ = 0;
  observed_ = 0;
  relied_on_absence_ = false;
  broken_ = Status::ok;
}

void Transaction::rollback(Status reason) {
  if (!is_active()) return;
  DCHECK(worker_->slot().in_commit_epoch.load(std::memory_order_relaxed) == 0);
  worker_->metrics().aborts[static_cast<uint32_t>(reason)].add();
  installs_on_read_ = reason == Status::pointer_installed && relied_on_absence_;
  end();
}

Status Transaction::read(const RecordRef& ref, uint32_t offset, uint32_t count, void* out,
                         Vid& seen, std::span<const std::byte> key) {
  const Status status = read_stable(*worker_, *ref.record, seen, [&](Vid vid) {
    if (!vid.is_deleted()) racy_read(out, ref.payload() + offset, count);
  });
  if (status != Status::ok || seen.is_relocated()) return status;
  const Status registered = register_read(ref.record, seen);
  if (registered != Status::ok) return registered;
  WriteEntry* own = own_write(ref, key);
  if (own == nullptr) return seen.is_deleted() ? Status::not_found : Status::ok;
  if (log_of(*own).type == LogType::erase) return Status::not_found;
  return overlay(ref, *own, seen, offset, count, out);
}

Status Transaction::read_in_place(const RecordRef& ref, uint32_t offset, uint32_t count, void* out,
                                  Vid& seen) {
  const Status status = read(ref, offset, count, out, seen);
  // Does not follow a relocated array record: its page was dropped. The next attempt finds the
  // snapshot page, or a volatile copy of it.
  return status == Status::ok && seen.is_relocated() ? Status::read_conflict : status;
}

Status Transaction::register_pointer(const DualPointer* pointer, uint64_t word) {
  DCHECK(VolatilePointer(word).is_null() && !VolatilePointer(word).is_frozen());
  // Searches the latest entries for the pointer, because many reads may depend on one null word,
  // for example that of a cold tree. A duplicate entry is harmless.
  constexpr uint32_t kLatest = 16;
  for (uint32_t i = pointers_.size(); i > 0 && pointers_.size() - i < kLatest; --i) {
    const PointerEntry& entry = pointers_[i - 1];
    if (entry.pointer == pointer) return entry.seen == word ? Status::ok : Status::read_conflict;
  }
  return pointers_.push({pointer, word}) ? Status::ok : fail(Status::transaction_too_large);
}

Status Transaction::register_page(PageHeader* page, PageVersion seen) {
  DCHECK(page != nullptr && !seen.is_moved());
  if (fault::no_page_registration) return Status::ok;
  // After a scan, a look-up in the same page needs no second entry if nothing has changed.
  if (!pages_.empty()) {
    const PageVersionEntry& last = pages_[pages_.size() - 1];
    if (last.page == page && last.seen.word() == seen.word()) return Status::ok;
  }
  return pages_.push({page, seen}) ? Status::ok : fail(Status::transaction_too_large);
}

Status Transaction::register_word(const std::atomic<uint64_t>& word, uint64_t seen) {
  if (fault::unregistered_lists) return Status::ok;
  return words_.push({&word, seen}) ? Status::ok : fail(Status::transaction_too_large);
}

bool Transaction::depends_on(const DualPointer* pointer) {
  if (fault::install_over_own_reads) pointers_.clear();
  relied_on_absence_ =
      std::any_of(pointers_.begin(), pointers_.end(),
                  [&](const PointerEntry& entry) { return entry.pointer == pointer; });
  return relied_on_absence_;
}

bool Transaction::has_pointer_in(const PageHeader* page) const {
  const auto begin = reinterpret_cast<uintptr_t>(page);
  return std::any_of(pointers_.begin(), pointers_.end(), [begin](const PointerEntry& entry) {
    // The difference is huge if the pointer lies before the page.
    return reinterpret_cast<uintptr_t>(entry.pointer) - begin < kPageBytes;
  });
}

namespace {

/// R13: returns true if an entry has the page word from before the transaction's own change.
bool is_word_before(PageVersion seen, PageVersion before) {
  return seen.word() == before.word() || fault::adopt_foreign_version;
}

}  // namespace

Status Transaction::page_changed(PageHeader* page, PageVersion before, PageVersion after) {
  DCHECK(before.counter() < after.counter() && before.count() <= after.count());
  DCHECK(!before.is_moved() && !after.is_moved());
  if (fault::keep_page_entry_on_reserve) return Status::ok;
  absences_changed(page, before, after);
  for (PageVersionEntry& entry : pages_) {
    if (entry.page != page) continue;
    if (!is_word_before(entry.seen, before)) return fail(Status::phantom);
    entry.seen = after;
  }
  return Status::ok;
}

void Transaction::record_changed(const RecordHead* record, Vid before, Vid after) {
  DCHECK((before.version() == after.version() || before.is_open()) && before != after);
  if (fault::keep_record_entry_on_revival) return;
  for (ReadEntry& entry : reads_) {
    if (entry.record == record && entry.seen == before) entry.seen = after;
  }
}

Status Transaction::page_replaced(PageHeader* page, PageVersion before,
                                  std::span<const PageVersionEntry> successors,
                                  std::span<const ReadEntry> elided) {
  if (fault::keep_page_entry_on_reserve) return Status::ok;
  DCHECK(!before.is_moved() && !successors.empty());
  bool depended = absences_replaced(page, before);
  for (uint32_t i = 0; i < pages_.size();) {
    if (pages_[i].page != page) {
      ++i;
      continue;
    }
    if (!is_word_before(pages_[i].seen, before)) return fail(Status::phantom);
    depended = true;
    pages_.remove(i);
  }
  if (fault::keep_reads_of_elided) elided = {};
  // The key of an elided tombstone is absent from the successors. From now on their page words
  // stand for that absence, so the read entry is removed.
  for (const ReadEntry& gone : elided) {
    for (uint32_t i = 0; i < reads_.size();) {
      if (reads_[i].record != gone.record) {
        ++i;
        continue;
      }
      if (reads_[i].seen != gone.seen) return fail(Status::phantom);
      depended = true;
      reads_.remove(i);
    }
  }
  if (!depended) return Status::ok;
  for (const PageVersionEntry& successor : successors) {
    DCHECK(!successor.seen.is_moved());
    if (!pages_.push(successor)) return fail(Status::transaction_too_large);
  }
  return Status::ok;
}

bool Transaction::is_visible(const RecordRef& ref, std::span<const std::byte> key, Vid seen) {
  WriteEntry* own = own_write(ref, key);
  if (own == nullptr) return !seen.is_deleted();
  return log_of(*own).type != LogType::erase;
}

Status await_move(const WorkerContext& worker, const PageHeader* page) {
  DCHECK(page->type == PageType::mastertree_border);  // pages of arrays have no successors
  if (fault::no_await_move) return Status::ok;
  for (uint32_t turns = 0; !page->version().is_moved();) {
    if (worker.cluster_failed()) return Status::cluster_failed;
    reach(SyncPoint::awaiting_move);
    spin_or_yield(turns);
  }
  return Status::ok;
}

}  // namespace atolldb
