#include "engine/transaction/commit.h"

#include <sched.h>

#include <algorithm>

#include "engine/format/tree_record.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/transaction/increment.h"
#include "engine/transaction/sort_writes.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

Status Transaction::commit() {
  if (!is_active()) return Status::invalid_argument;
  if (broken_ != Status::ok) {
    const Status reason = broken_;
    rollback(reason);
    return reason;
  }
  CommitProtocol protocol(*this);
  const bool read_only = is_read_only();
  const Status status = read_only ? protocol.commit_read_only() : protocol.commit_writes();
  if (status != Status::ok) {
    rollback(status);
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
  Status status = broken_;
  // Snapshot reads find own writes by key, so their volatile records do not matter.
  if (status == Status::ok && snapshot_ == nullptr) status = verify_planned_writes();
  if (writes_size_ != 0 && !mutant(Mutant::user_abort_keeps_writes)) {
    // Nothing is locked here. So a planned write must not excuse the lock of another worker, which
    // may be writing what was read (R20).
    write_index_.clear();
    writes_size_ = 0;
  }
  // Scans see own appends. Without them, the verification needs no exception for own lists.
  appends_.clear();
  if (mutant(Mutant::unverified_user_abort)) {
    status = Status::ok;
  } else if (status == Status::ok) {
    status = CommitProtocol(*this).commit_read_only();
  }
  rollback(status == Status::ok ? Status::user_abort : status);
  return status;
}

Status CommitProtocol::commit_read_only() {
  if (mutant(Mutant::read_only_publishes)) {
    worker_.slot().in_commit_epoch.store(worker_.current_epoch(), std::memory_order_seq_cst);
  }
  const Status status = verify();
  txn_.commit_epoch_ = Vid(max_seen_).epoch();
  return status;
}

Status CommitProtocol::commit_writes() {
  Status status = prepare_appends();
  if (status != Status::ok) return status;
  for (;;) {
    status = lock_writes();
    if (status != Status::ok) return status;
    if (!mutant(Mutant::append_after_in_commit)) begin_appends();
    WorkerSlot& slot = worker_.slot();
    // Store, then load, both seq_cst (R21): a logger that closes the loaded epoch sees the store.
    // The stored value was loaded earlier, so it is a lower bound of the commit epoch.
    const uint64_t lower_bound = worker_.current_epoch();
    reach(SyncPoint::loaded_epoch);
    slot.in_commit_epoch.exchange(lower_bound, std::memory_order_seq_cst);
    commit_epoch_ = worker_.view().control->epochs.current.load(std::memory_order_seq_cst);
    if (mutant(Mutant::epoch_before_in_commit)) commit_epoch_ = lower_bound;
    if (mutant(Mutant::append_after_in_commit)) begin_appends();
    status = verify();
    if (status != Status::ok) {
      leave_commit();
      return status;
    }
    if (make_vid()) break;
    // R16: the ordinals of this epoch are used up. Retry in the next epoch.
    leave_commit();
    status = wait_for_next_epoch();
    if (status != Status::ok) return status;
  }
  if (mutant(Mutant::clear_in_commit_early)) leave_epoch();
  reach(SyncPoint::verified);
  if (mutant(Mutant::unlock_before_publish)) {
    unlock(txn_.writes_size_);
    sched_yield();
    apply();
    leave_epoch();
    return Status::ok;
  }
  apply();
  apply_appends();
  txn_.last_vid_ = vid_;
  txn_.commit_epoch_ = commit_epoch_;
  publish_log();
  reach(SyncPoint::applied);
  leave_epoch();
  if (mutant(Mutant::dirty_after_in_commit)) worker_.note_dirty(commit_epoch_);
  unlock(txn_.writes_size_);
  note_erased_records();
  return Status::ok;
}

void CommitProtocol::publish_log() {
  worker_.metrics().log_bytes.add(txn_.log_.used_bytes());
  if (!txn_.log_.is_logged()) return;
  txn_.log_.publish(commit_epoch_);
  if (mutant(Mutant::clean_epochs) || mutant(Mutant::dirty_after_in_commit)) return;
  worker_.note_dirty(commit_epoch_);
}

void CommitProtocol::note_erased_records() {
  if (!txn_.erases_) return;
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    const LogRecord& log = txn_.log_of(txn_.writes_[i]);
    if (log.type == LogType::erase)
      ops_of(txn_.write_heads_[i]).note_erased(worker_, txn_.write_heads_[i], log.key_span());
  }
}

void CommitProtocol::leave_epoch() {
  // Release pairs with the logger's load when it closes the epoch: all writes are visible then.
  worker_.slot().in_commit_epoch.store(0, std::memory_order_release);
}

void CommitProtocol::leave_commit() {
  cancel_appends();
  leave_epoch();
  if (!mutant(Mutant::keep_locks_on_failure)) unlock(txn_.writes_size_);
}

Status CommitProtocol::wait_for_next_epoch() {
  for (;;) {
    if (worker_.cluster_failed()) return Status::cluster_failed;
    const Status status = txn_.check();  // the deadline (R20)
    if (status != Status::ok) return status;
    if (worker_.current_epoch() > commit_epoch_) return Status::ok;
    // The clock stops at the last epoch.
    if (commit_epoch_ >= kMaxEpoch && !mutant(Mutant::await_any_epoch))
      return Status::deadline_exceeded;
    reach(SyncPoint::awaiting_epoch);
    sched_yield();
  }
}

// -- Locks ----------------------------------------------------------------------------------------

Status CommitProtocol::lock_writes() {
  for (;;) {
    if (!mutant(Mutant::unsorted_locks)) sort_writes(txn_.writes_, txn_.writes_size_);
    bool moved = false;
    Status status = lock_writes_once(moved);
    if (status != Status::ok || !moved) return status;
    status = track_writes();
    if (status != Status::ok) return status;
  }
}

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

/// Locks all records of the write set in order. Stops at a record that has `moved`, or with an
/// error status. `locked` counts the locks taken. If all are taken, `max_seen_` gets the largest
/// VID found.
Status CommitProtocol::lock_in_order(uint32_t& locked, uint32_t& remote, bool& moved) {
  const uint32_t count = txn_.writes_size_;
  uint64_t max_locked = 0;
  UniversalName last;
  for (uint32_t i = 0; i < count; ++i) {
    const WriteEntry& entry = txn_.writes_[i];
    // R22. Also R14: with two entries for one record this worker would wait for itself.
    CHECK(i == 0 || last < entry.record || mutant(Mutant::unsorted_locks));
    last = entry.record;
    RecordHead* record = txn_.write_heads_[i];
    const UniversalName name = mutant(Mutant::unnamed_locks) ? UniversalName() : entry.record;
    reach(SyncPoint::locking_write);
    const Status status = worker_.locker().lock(record->lock, block_of(i), name);
    if (status != Status::ok) return status;
    ++locked;
    if (entry.record.node() != worker_.node()) ++remote;
    const Vid vid = record->load_acquire();
    const bool is_ignored = mutant(Mutant::use_dropped_pages) && is_array_write(entry);
    if (vid.is_elsewhere() && !is_ignored) {
      moved = true;
      return Status::ok;
    }
    if (!write_still_fits(entry, *record, vid)) return Status::write_conflict;
    max_locked = std::max(max_locked, vid.version());
  }
  if (txn_.snapshot_ != nullptr && !are_as_of_snapshot()) return Status::snapshot_conflict;
  reach(SyncPoint::locked_writes);
  // R15: the VID found under the lock counts as observed, so VIDs grow per key.
  max_seen_ = mutant(Mutant::vid_ignores_locked_record) ? 0 : max_locked;
  return Status::ok;
}

/// R18: returns true if no locked record was written after the snapshot. A reserved record (ordinal
/// 0) was not written, but its key may have had another record, which was elided. Then the floor of
/// the page is newer than the snapshot (R43). Array records always exist.
bool CommitProtocol::are_as_of_snapshot() const {
  const uint64_t epoch = txn_.snapshot_->epoch();
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    const RecordHead* record = txn_.write_heads_[i];
    const Vid vid = record->load_acquire();
    if (vid.ordinal() != 0) {
      if (vid.epoch() > epoch && !mutant(Mutant::snapshot_write_unchecked)) return false;
    } else if (!is_array_write(txn_.writes_[i])) {
      const Vid floor(page_of(record)->floor.load(std::memory_order_relaxed));
      if (floor.epoch() > epoch && !mutant(Mutant::snapshot_reserve_unchecked)) return false;
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
  // The record may have been elided and created again, smaller, since the write was planned.
  if (log.type == LogType::insert && log.payload_bytes > tree_record.capacity) return false;
  // The record was alive when the write was planned. Scans now rely on the page word for its
  // absence, so the insert must be announced there first (R12).
  if (log.type == LogType::insert && vid.is_settled_dead()) {
    return mutant(Mutant::revive_unannounced);
  }
  if (log.type != LogType::update) return true;
  // Increments have no read-set entry that would detect a deletion (R33).
  const bool lives = !vid.is_deleted() || mutant(Mutant::update_dead_records);
  return lives && log.payload_offset + log.payload_bytes <=
                      tree_record.payload_bytes.load(std::memory_order_relaxed);
}

Status CommitProtocol::track_writes() {
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    WriteEntry& entry = txn_.writes_[i];
    RecordHead* record = record_of(entry);
    if (!record->load_acquire().is_elsewhere()) continue;
    if (!ops_of(record).track_moved(worker_, record, entry.payload_at))
      return Status::write_conflict;
    entry.record = worker_.name_of(record);
  }
  return Status::ok;
}

void CommitProtocol::unlock(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    worker_.locker().unlock(txn_.write_heads_[i]->lock, block_of(i));
  }
}

// -- Verification ---------------------------------------------------------------------------------

Status CommitProtocol::verify() {
  // All reads came from a snapshot. The records that writes have reserved were checked under their
  // locks.
  if (txn_.snapshot_ != nullptr) return Status::ok;
  max_seen_ = std::max(max_seen_, txn_.observed_);
  if (!mutant(Mutant::skip_read_set_check)) {
    for (const ReadEntry& read : txn_.reads_) {
      if (!is_as_read(read)) [[unlikely]] {
        const Status status = verify_read(read);
        if (status != Status::ok) return status;
      }
      if (read.seen.ordinal() != 0 || mutant(Mutant::reserved_counts_as_commit)) {
        max_seen_ = std::max(max_seen_, read.seen.version());
      }
    }
  }
  if (!mutant(Mutant::skip_pointer_set_check)) {
    for (const PointerEntry& entry : txn_.pointers_) {
      if (entry.pointer->volatile_word.load(std::memory_order_seq_cst) != entry.seen) {
        return Status::pointer_installed;
      }
    }
  }
  if (!mutant(Mutant::skip_page_version_check)) {
    for (const PageVersionEntry& entry : txn_.pages_) {
      if (entry.page->version_word.load(std::memory_order_seq_cst) != entry.seen.word()) {
        return Status::phantom;
      }
    }
  }
  return verify_lists();
}

/// Loads the lock first, then the VID. Consider a writer that had passed its own verification when
/// this commit locked its writes. That writer either still holds the lock, or has stored its VID
/// before it unlocked. In the opposite order it could do both between the two loads.
CommitProtocol::Look CommitProtocol::look_at(const RecordHead& record) {
  if (mutant(Mutant::vid_before_lock)) {
    const Vid vid(record.vid.load(std::memory_order_seq_cst));
    reach(SyncPoint::verifying_read);
    return {record.lock.tail.load(std::memory_order_seq_cst), vid};
  }
  const uint64_t tail = record.lock.tail.load(std::memory_order_seq_cst);
  reach(SyncPoint::verifying_read);
  return {tail, Vid(record.vid.load(std::memory_order_seq_cst))};
}

/// Returns true in the usual case of verify_read: the VID is unchanged, and the lock is free or
/// ours.
bool CommitProtocol::is_as_read(const ReadEntry& read) const {
  const Look now = look_at(*read.record);
  // No branch on the lock, because it is unpredictable whether a read record is also written.
  const auto is_free = static_cast<uint32_t>(now.tail == 0);
  return (is_free | static_cast<uint32_t>(is_ours(now.tail))) != 0 && now.vid == read.seen;
}

Status CommitProtocol::verify_read(const ReadEntry& read) {
  RecordHead* record = read.record;
  for (;;) {
    const Look now = look_at(*record);
    if (now.vid == read.seen) {
      if (now.tail == 0 || mutant(Mutant::skip_lock_check)) return Status::ok;
      // Membership in the write set excuses the lock, but never a changed VID (R11).
      return in_write_set(record) ? Status::ok : Status::read_conflict;
    }
    if (mutant(Mutant::excuse_own_writes) && in_write_set(record)) return Status::ok;
    if (!now.vid.is_elsewhere()) return Status::read_conflict;
    uint16_t payload_at = 0;
    const RecordHead* before = record;
    if (!ops_of(record).track_moved(worker_, record, payload_at)) return Status::read_conflict;
    // The mover has not published the new place yet. It may have lost its processor, and this
    // worker holds locks: do not wait (R23).
    if (record == before && !mutant(Mutant::wait_in_verification)) return Status::read_conflict;
  }
}

bool CommitProtocol::in_write_set(const RecordHead* record) const {
  // If the tail of the queue names this worker, it holds the lock and no other worker waits for it.
  // With a waiter, the tail names the waiter, and the search decides.
  const uint64_t tail = record->lock.tail.load(std::memory_order_relaxed);
  if (tail != 0 && is_ours(tail)) return true;
  WriteEntry probe{};
  probe.record = worker_.name_of(record);
  return std::binary_search(txn_.writes_, txn_.writes_ + txn_.writes_size_, probe, by_record);
}

// -- Writing --------------------------------------------------------------------------------------

bool CommitProtocol::make_vid() {
  const Vid last(std::max(max_seen_, txn_.last_vid_.version()));
  CHECK(last.epoch() <= commit_epoch_);
  const uint64_t ordinal = last.epoch() == commit_epoch_ ? last.ordinal() + 1 : 1;
  if (ordinal > Vid::kMaxOrdinal && !mutant(Mutant::ignore_used_up_ordinals)) return false;
  vid_ = Vid::make(commit_epoch_, ordinal);
  return true;
}

void CommitProtocol::apply() {
  for (uint32_t i = 0; i < txn_.writes_size_; ++i) {
    const WriteEntry& entry = txn_.writes_[i];
    apply_record(entry, txn_.log_of(entry), *txn_.write_heads_[i]);
  }
}

void CommitProtocol::apply_record(const WriteEntry& entry, LogRecord& log, RecordHead& record) {
  log.vid = vid_.word();
  if (log.type == LogType::erase) {
    record.vid.store(vid_.with(Vid::kDeleted).word(), std::memory_order_release);
    return;
  }
  const uint64_t before = record.vid.load(std::memory_order_relaxed);
  record.vid.store(before | Vid::kBeingWritten, std::memory_order_relaxed);
  // No reader accepts new bytes without that flag: the first store of the payload comes after it
  // (set_payload_bytes, racy_write).
  std::byte* target = reinterpret_cast<std::byte*>(&record) + entry.payload_at + log.payload_offset;
  if (entry.increment != 0) {
    add_increment(static_cast<IncrementType>(entry.increment), target, log.payload(),
                  log.payload());
  }
  if (log.type == LogType::insert) set_payload_bytes(record, log.payload_bytes);
  racy_write(target, log.payload(), log.payload_bytes);
  // Release: a reader that sees the new VID sees the new payload.
  record.vid.store(vid_.word(), std::memory_order_release);
}

}  // namespace atolldb
