#include "engine/transaction/commit.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "engine/format/tree_record.h"
#include "engine/hooks/sync_points.h"
#include "engine/transaction/sort_writes.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

Status Transaction::commit() {
  if (state_ != State::serializable) [[unlikely]] {
    const Status status = check_contended();
    if (status != Status::ok) return status;
  }
  if (broken_ != Status::ok) {
    const Status reason = broken_;
    rollback(reason);
    return reason;
  }
  const bool read_only = is_read_only();
  const Status status = read_only ? run_protocol(*this, &CommitProtocol::commit_read_only)
                                  : run_protocol(*this, &CommitProtocol::commit_writes);
  if (status != Status::ok) {
    rollback(status);
    learn_from_failure();
    return status;
  }
  WorkerMetrics& metrics = worker_->metrics();
  (read_only ? metrics.read_only_commits : metrics.commits).add();
  installs_on_read_ = false;
  end();
  return Status::ok;
}

Status Transaction::commit_user_abort() {
  if (!is_active()) return Status::invalid_argument;
  const Status status = run_protocol(*this, &CommitProtocol::verify_user_abort);
  rollback(status == Status::ok ? Status::user_abort : status);
  learn_from_failure();
  return status;
}

Status Transaction::check_contended() {
  if (!is_active()) return Status::invalid_argument;
  if (state_ != State::contended || is_read_only() || broken_ != Status::ok) return Status::ok;
  const Status status = run_protocol(*this, &CommitProtocol::check_reads);
  if (status != Status::ok) {
    rollback(status);
    learn_from_failure();
  }
  return status;
}

/// Relaxed loads: the result is a hint. A record on the move is left to the verification.
Status CommitProtocol::check_reads() {
  for (const ReadEntry& read : txn_.reads_) {
    const McsWord& lock = read.record->lock;
    const LockCode holder = lock.holder.load(std::memory_order_relaxed);
    const Vid vid(read.record->vid.load(std::memory_order_relaxed));
    if (vid.is_relocated()) continue;
    const bool is_free = holder == 0 || worker_.locker().is_own(holder) || lock.is_early();
    if (is_free && vid == read.seen) continue;
    txn_.failed_read_ = read.record;
    return Status::read_conflict;
  }
  return Status::ok;
}

Status CommitProtocol::verify_user_abort() {
  Status status = txn_.broken_;
  // A transaction that reads a snapshot finds its own writes by key, wherever their volatile
  // records are. So it needs no check for missed writes.
  if (status == Status::ok && txn_.snapshot_ == nullptr) status = txn_.verify_planned_writes();
  // Discards the appends, so that the verification needs no exception for this worker's lists.
  txn_.appends_.clear();
  // The planned writes excuse no lock, because this worker holds no lock for them.
  return status == Status::ok ? commit_read_only() : status;
}

Status CommitProtocol::commit_read_only() {
  const Status status = verify();
  txn_.commit_epoch_ = Vid(max_seen_).epoch();
  return status;
}

Status CommitProtocol::commit_writes() {
  DCHECK(txn_.is_active() && !txn_.is_read_only());
  Status status = prepare_appends();
  if (status != Status::ok) return status;
  for (;;) {
    status = lock_writes();
    if (status != Status::ok) return status;
    begin_appends();
    enter_epoch(worker_.current_epoch());
    status = verify();
    if (status != Status::ok) {
      leave_commit();
      return status;
    }
    if (make_vid()) break;
    // R16: the ordinals of this epoch are used up. Retry in the next epoch.
    leave_commit();
    worker_.release_early_locks();
    status = wait_for_next_epoch();
    if (status != Status::ok) return status;
  }
  write_and_publish();
  return Status::ok;
}

void CommitProtocol::write_and_publish() {
  apply();
  apply_appends();
  txn_.last_vid_ = vid_;
  txn_.commit_epoch_ = commit_epoch_;
  publish_log();
  leave_epoch_and_unlock();
  record_erasures();
}

void CommitProtocol::publish_log() {
  DCHECK(worker_.slot().in_commit_epoch.load(std::memory_order_relaxed) != 0);
  worker_.metrics().log_bytes.add(txn_.log_.used_bytes());
  if (!txn_.log_.is_logged()) return;
  txn_.log_.publish(commit_epoch_);
  raise_dirty_epoch();
}

void CommitProtocol::record_erasures() {
  if (!txn_.erases_) return;
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    const LogRecord& log = txn_.log_of(txn_.writes_[i]);
    if (log.type == LogType::erase)
      ops_of(txn_.write_heads_[i]).record_erased(worker_, txn_.write_heads_[i], log.key_span());
  }
}

// -- Epoch ----------------------------------------------------------------------------------------

/// Stores the in-commit epoch before it loads the commit epoch, both seq_cst (R21). So a logger
/// that closes the loaded epoch sees the store. The stored value was loaded earlier, so it is a
/// lower bound of the commit epoch.
void CommitProtocol::enter_epoch(uint64_t lower_bound) {
  WorkerSlot& slot = worker_.slot();
  DCHECK(slot.in_commit_epoch.load(std::memory_order_relaxed) == 0);
  DCHECK(slot.begin_epoch.load(std::memory_order_relaxed) <= lower_bound);
  slot.in_commit_epoch.exchange(lower_bound, std::memory_order_seq_cst);
  commit_epoch_ = worker_.view().control->epochs.current.load(std::memory_order_seq_cst);
  DCHECK(lower_bound <= commit_epoch_ && commit_epoch_ <= kMaxEpoch);
}

void CommitProtocol::leave_epoch() {
  // Release pairs with the logger's load when it closes the epoch: all writes are visible then.
  worker_.slot().in_commit_epoch.store(0, std::memory_order_release);
}

void CommitProtocol::leave_epoch_and_unlock() {
  leave_epoch();
  unlock(txn_.writes_size_);
}

void CommitProtocol::leave_commit() {
  cancel_appends();
  leave_epoch_and_unlock();
}

Status CommitProtocol::wait_for_next_epoch() {
  DCHECK(worker_.slot().in_commit_epoch.load(std::memory_order_relaxed) == 0);
  for (;;) {
    if (worker_.cluster_failed()) return Status::cluster_failed;
    const Status status = txn_.check();  // fails at the deadline (R20)
    if (status != Status::ok) return status;
    if (worker_.current_epoch() > commit_epoch_) return Status::ok;
    // No later epoch comes, because the clock stops at the last possible epoch.
    if (is_last_epoch()) return Status::deadline_exceeded;
    sched_yield();
  }
}

// -- Locks ----------------------------------------------------------------------------------------

Status CommitProtocol::lock_writes() {
  for (;;) {
    sort();
    bool moved = false;
    Status status = lock_writes_once(moved);
    if (status != Status::ok || !moved) return status;
    status = track_writes();
    if (status != Status::ok) return status;
  }
}

void CommitProtocol::sort() { sort_writes(txn_.writes_, txn_.writes_size_); }

Status CommitProtocol::lock_writes_once(bool& moved) {
  const uint32_t count = txn_.writes_size_;
  for (uint32_t i = 0; i < count; ++i) {
    txn_.write_heads_[i] = record_of(txn_.writes_[i]);
    __builtin_prefetch(txn_.write_heads_[i], 1);
  }
  uint32_t locked = 0;
  uint32_t remote = 0;
  const Status status = lock_in_order(locked, remote, moved);
  worker_.metrics().local_locks.add(locked - remote);
  if (remote != 0) worker_.metrics().remote_locks.add(remote);
  if (status != Status::ok || moved) unlock(locked);
  return status;
}

Status CommitProtocol::lock_in_order(uint32_t& locked, uint32_t& remote, bool& moved) {
  const uint32_t count = txn_.writes_size_;
  DCHECK(count <= txn_.limits_.write_set);
  uint64_t max_locked = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const WriteEntry& entry = txn_.writes_[i];
    // Locks are taken in universal order (R22). The check also finds two entries for one record,
    // which R14 forbids: this worker would wait for its own lock.
    CHECK(is_in_order(i));
    const RecordHead* record = txn_.write_heads_[i];
    const Status status = lock_write(i);
    if (status != Status::ok) return status;
    DCHECK(is_locked(i));
    ++locked;
    if (entry.record.node() != worker_.node()) ++remote;
    const Vid vid = record->load_acquire();
    DCHECK(!vid.is_being_written());
    if (has_moved(entry, vid)) {
      moved = true;
      return Status::ok;
    }
    if (!write_still_fits(entry, *record, vid)) return Status::write_conflict;
    max_locked = std::max(max_locked, vid.version());
  }
  if (txn_.snapshot_ != nullptr && !are_as_of_snapshot()) return Status::snapshot_conflict;
  // R15: the VIDs found under the locks count as observed, so the VIDs of a key grow.
  max_seen_ = max_locked;
  return Status::ok;
}

/// If this worker holds the lock early, the commit takes it over. Otherwise the holder most likely
/// writes the record. If this transaction has read it, the verification would then fail. So the
/// attempt ends now. While it waited, it would stop the workers that want its other locks.
Status CommitProtocol::lock_contended(uint32_t i) {
  if (take_over_early(i)) return Status::ok;
  RecordHead* record = txn_.write_heads_[i];
  const UniversalName name = txn_.writes_[i].record;
  EarlyLocks& early = worker_.early_locks();
  if (worker_.hot_records().is_on() && has_read(record)) {
    txn_.failed_read_ = record;
    return Status::read_conflict;
  }
  // R104: the worker waits only for a lock that comes after all locks that it holds. The
  // verification covers the reads of the released records.
  if (!fault::wait_before_early_locks) early.release_after(name);
  return worker_.locker().lock(record->lock, name);
}

bool CommitProtocol::take_over_early(uint32_t i) {
  return worker_.early_locks().take_over(txn_.writes_[i].record);
}

bool CommitProtocol::has_read(const RecordHead* record) const {
  if (txn_.reads_.size() > Transaction::kMostReadsOfShort) return false;
  const auto is_same = [&](const ReadEntry& read) { return read.record == record; };
  return std::any_of(txn_.reads_.begin(), txn_.reads_.end(), is_same);
}

/// R18: returns true if no locked record was written after the snapshot. A reserved record (ordinal
/// 0) was not written. But its key may have had another record, which was deleted after the
/// snapshot and elided. The page's newest removed version is then newer than the snapshot (R43).
/// Array records are never elided.
bool CommitProtocol::are_as_of_snapshot() const {
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    const RecordHead* record = txn_.write_heads_[i];
    DCHECK(is_locked(i));
    const Vid vid = record->load_acquire();
    // The record was removed from a delta tree and added again by a write that has not read the
    // snapshot (R82). So its version is unknown.
    if (vid.is_open() && !fault::leave_records_open) return false;
    if (vid.ordinal() != 0) {
      if (was_written_since_snapshot(vid)) return false;
    } else if (!is_array_write(txn_.writes_[i])) {
      const Vid max_removed_vid(page_of(record)->max_removed_vid.load(std::memory_order_relaxed));
      if (was_removed_since_snapshot(max_removed_vid)) return false;
    }
  }
  return true;
}

bool CommitProtocol::write_still_fits(const WriteEntry& entry, const RecordHead& record,
                                      Vid vid) const {
  // Array records always exist and never change their size.
  if (is_array_write(entry)) return true;
  const LogRecord& log = txn_.log_of(entry);
  const auto& tree_record = reinterpret_cast<const TreeRecord&>(record);
  if (log.type == LogType::insert) {
    // Since the write was planned, the record may have been elided and created again with less
    // room. Or another transaction may have deleted it. Scans rely on the page word for the absence
    // of a stable tombstone, so an insert must change that word first (R12).
    return log.payload_bytes <= tree_record.capacity && !vid.is_stable_tombstone();
  }
  if (log.type == LogType::add) {
    // The registered VID stands for the open record. Here it may have been replaced by another one.
    return vid.is_open() && vid.ordinal() == 0 && tree_record.capacity >= sizeof(PendingAdd);
  }
  if (log.type != LogType::update) return true;
  // Checks this for increments, which have no read-set entry that detects a deletion (R33).
  return !vid.is_deleted() && log.payload_offset + log.payload_bytes <=
                                  tree_record.payload_bytes.load(std::memory_order_relaxed);
}

Status CommitProtocol::track_writes() {
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    WriteEntry& entry = txn_.writes_[i];
    RecordHead* record = record_of(entry);
    if (!record->load_acquire().is_relocated()) continue;
    if (!ops_of(record).track_moved(worker_, record, entry.payload_at))
      return Status::write_conflict;
    DCHECK(page_of(record)->type == PageType::mastertree_border);  // track_moved fails for arrays
    entry.record = worker_.name_of(record);
  }
  return Status::ok;
}

void CommitProtocol::unlock(uint32_t count) {
  DCHECK(count <= txn_.writes_size_);
  McsLocker& locker = worker_.locker();
  for (uint32_t i = 0; i < count; ++i) {
    DCHECK(is_locked(i));
    locker.release(txn_.write_heads_[i]->lock);
  }
  if (!locker.has_sleepers()) [[likely]]
    return;
  for (uint32_t i = 0; i < count; ++i) locker.wake_sleeper(txn_.write_heads_[i]->lock);
}

// -- Verification ---------------------------------------------------------------------------------

Status CommitProtocol::verify() {
  // All reads came from a snapshot, so there is nothing to verify. lock_in_order has checked the
  // records that this transaction writes.
  if (txn_.snapshot_ != nullptr) return Status::ok;
  max_seen_ = std::max(max_seen_, txn_.observed_);
  Status status = verify_reads();
  if (status == Status::ok) status = verify_pointers();
  if (status == Status::ok) status = verify_pages();
  return status == Status::ok ? verify_lists() : status;
}

Status CommitProtocol::verify_reads() {
  for (const ReadEntry& read : txn_.reads_) {
    DCHECK(!read.seen.is_relocated() && !read.seen.is_being_written());
    if (!is_as_read(read)) [[unlikely]] {
      const Status status = verify_read(read);
      if (status != Status::ok) {
        txn_.failed_read_ = read.record;
        return status;
      }
    }
    // R19: a VID with ordinal 0 is no commit, so the reply to the client does not depend on it.
    if (read.seen.ordinal() != 0) max_seen_ = std::max(max_seen_, read.seen.version());
  }
  return Status::ok;
}

Status CommitProtocol::verify_pointers() {
  for (const PointerEntry& entry : txn_.pointers_) {
    if (entry.pointer->volatile_word.load(std::memory_order_seq_cst) != entry.seen) {
      return Status::pointer_installed;
    }
  }
  return Status::ok;
}

Status CommitProtocol::verify_pages() {
  for (const PageVersionEntry& entry : txn_.pages_) {
    DCHECK(!entry.seen.is_moved());
    if (entry.page->version_word.load(std::memory_order_seq_cst) != entry.seen.word()) {
      return Status::phantom;
    }
  }
  return txn_.absences_.empty() ? Status::ok : verify_absences();
}

/// Loads the lock first, then the VID. Consider a writer that had passed its own verification when
/// this commit locked its writes. That writer either still holds the lock, or has stored its VID
/// before it unlocked. If the VID were loaded first, the writer could store its VID and unlock
/// between the two loads. Waiters do not matter: none of them has the lock before it has changed
/// `holder` (R21).
CommitProtocol::Probe CommitProtocol::probe(const RecordHead& record) const {
  const LockCode holder = record.lock.holder.load(std::memory_order_seq_cst);
  return {holder, Vid(record.vid.load(std::memory_order_seq_cst))};
}

/// Loads the mark first, then the VID, for the same reason (R106).
CommitProtocol::MarkedProbe CommitProtocol::probe_with_mark(const RecordHead& record) const {
  const bool is_early = record.lock.is_early();
  reach(SyncPoint::verifying_mark);
  return {is_early, probe(record)};
}

/// Returns true in the usual case: the VID is unchanged, and the lock is free or this worker's.
bool CommitProtocol::is_as_read(const ReadEntry& read) const {
  const Probe now = probe(*read.record);
  // No branch on the lock: it is unpredictable whether a record that was read is also written.
  const auto is_free = static_cast<uint32_t>(now.holder == 0);
  const auto is_own = static_cast<uint32_t>(worker_.locker().is_own(now.holder));
  return (is_free | is_own) != 0 && now.vid == read.seen;
}

Status CommitProtocol::verify_read(const ReadEntry& read) {
  RecordHead* record = read.record;
  for (;;) {
    // R106: while a lock has the mark, its holder has not begun its commit, or only reads the
    // record.
    const auto [is_early, now] = probe_with_mark(*record);
    if (now.vid == read.seen) {
      if (now.holder == 0 || is_early) return Status::ok;
      // An own lock is excused, but never a changed VID (R11).
      return is_ours(*record, now.holder) ? Status::ok : Status::read_conflict;
    }
    if (!now.vid.is_relocated() || !follow(record)) return Status::read_conflict;
  }
}

bool CommitProtocol::follow(RecordHead*& record) {
  uint16_t payload_at = 0;
  const RecordHead* before = record;
  // If the place is the same, the thread that moves the record has not published the new place.
  // That thread may have been descheduled. This worker holds locks, so it does not wait (R23).
  return ops_of(record).track_moved(worker_, record, payload_at) && record != before;
}

// -- Writing --------------------------------------------------------------------------------------

bool CommitProtocol::make_vid() {
  const Vid last(std::max(max_seen_, txn_.last_vid_.version()));
  CHECK(last.epoch() <= commit_epoch_);
  const uint64_t ordinal = last.epoch() == commit_epoch_ ? last.ordinal() + 1 : 1;
  if (ordinal > Vid::kMaxOrdinal) return false;
  vid_ = Vid::make(commit_epoch_, ordinal);
  DCHECK(vid_.version() > last.version() && vid_.ordinal() != 0);
  return true;
}

void CommitProtocol::apply() {
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    const WriteEntry& entry = txn_.writes_[i];
    DCHECK(is_locked(i));
    apply_record(entry, txn_.log_of(entry), *txn_.write_heads_[i]);
  }
}

void CommitProtocol::apply_record(const WriteEntry& entry, LogRecord& log, RecordHead& record) {
  DCHECK(log.type != LogType::filler && log.type != LogType::append);
  const uint64_t before = record.vid.load(std::memory_order_relaxed);
  // VIDs grow (R15). The record has not moved, because a worker that moves a record locks it first
  // (R7).
  DCHECK(Vid(before).version() < vid_.version());
  DCHECK(!Vid(before).is_relocated() && !Vid(before).is_being_written());
  log.vid = vid_.word();
  if (log.type == LogType::erase) {
    DCHECK(!is_array_write(entry) && log.payload_bytes == 0);
    record.vid.store(vid_.with(Vid::kDeleted).word(), std::memory_order_release);
    return;
  }
  record.vid.store(before | Vid::kBeingWritten, std::memory_order_relaxed);
  if (log.type == LogType::add) return apply_add(entry, log, record);
  // The flag kBeingWritten is stored before the first byte of the payload (set_payload_bytes,
  // racy_write). So a reader that sees a new byte also sees the flag.
  std::byte* target = reinterpret_cast<std::byte*>(&record) + entry.payload_at + log.payload_offset;
  if (entry.increment != 0) {
    DCHECK(increment_bytes(static_cast<IncrementType>(entry.increment)) == log.payload_bytes);
    add_increment(static_cast<IncrementType>(entry.increment), target, log.payload(),
                  log.payload());
  }
  if (log.type == LogType::insert) set_payload_bytes(record, log.payload_bytes);
  racy_write(target, log.payload(), log.payload_bytes);
  // Release: a reader that sees the new VID sees the new payload.
  record.vid.store(vid_.word(), std::memory_order_release);
}

/// Stores what to add to the record of the snapshot. The record stays open, so that readers also
/// read the snapshot (R83).
void CommitProtocol::apply_add(const WriteEntry& entry, const LogRecord& log, RecordHead& record) {
  PendingAdd add;
  DCHECK(!is_array_write(entry) && log.payload_offset <= UINT16_MAX - sizeof add.delta);
  DCHECK(log.payload_bytes <= sizeof add.delta && log.vid == vid_.word());
  add.offset = log.payload_offset;
  add.type = static_cast<IncrementType>(log.number);
  std::memcpy(add.delta, log.payload(), std::min<size_t>(log.payload_bytes, sizeof add.delta));
  set_payload_bytes(record, sizeof add);
  racy_write(reinterpret_cast<std::byte*>(&record) + entry.payload_at, &add, sizeof add);
  record.vid.store(vid_.with(Vid::kDeleted | Vid::kOpen).word(), std::memory_order_release);
}

}  // namespace atolldb
