// The commit protocol (R11, R14-R16, R19, R21-R23, R104-R106). Source: [FOEDUS15] Algorithm 2 and
// section 8.2.
//
// The steps: lock the written records, load the commit epoch, verify the reads, make the VID, write
// the records, publish the log, unlock. engine/README.md, "A commit", has the details.
//
// The protocol is serializable. All written records are locked from before the load of the commit
// epoch until they are written. The verification comes after that load. It checks that every record
// read still has the VID that was read, and that no other worker holds its lock. So all reads and
// writes appear to happen when the commit epoch is loaded.
#pragma once

#include <cstdint>

#include "engine/hooks/mutants.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// Runs one commit of a transaction. ATOLL_STEP marks the steps that mutants of tests replace
/// (tests/engine/mutants).
class CommitProtocol {
 public:
  explicit CommitProtocol(Transaction& txn) : txn_(txn), worker_(*txn.worker_) {}

  /// Locks, verifies and writes. If the status is not ok, nothing was written and no lock is held.
  Status commit_writes();
  /// Verifies the reads only. Sets the epoch that the reply to the client depends on (R19).
  ATOLL_STEP Status commit_read_only();
  /// Checks whether the verification would fail, without locks. Returns ok if it may succeed.
  ATOLL_STEP Status check_reads();
  /// Verifies the reads of a transaction that discards its writes (R20). Removes its planned
  /// appends.
  ATOLL_STEP Status verify_user_abort();

 protected:
  // -- Locks --------------------------------------------------------------------------------------
  Status lock_writes();
  /// Sorts the write set into universal order.
  ATOLL_STEP void sort();
  /// Locks the write set once, in order, and waits for each lock. Sets `moved` if a record has
  /// moved; then nothing is locked.
  Status lock_writes_once(bool& moved);
  /// Locks all records of the write set in order. Stops with `moved` set at a record that has
  /// moved, or with an error status. `locked`: number of locks taken; `remote`: those of records on
  /// other nodes. If all locks are taken, `max_seen_` gets the largest VID found.
  ATOLL_STEP Status lock_in_order(uint32_t& locked, uint32_t& remote, bool& moved);
  ATOLL_STEP Status lock_write(uint32_t i) {
    McsWord& lock = txn_.write_heads_[i]->lock;
    if (worker_.locker().try_lock(lock)) [[likely]]
      return Status::ok;
    return lock_contended(i);
  }
  /// Takes over the early lock of entry i, if there is one. Otherwise ends the attempt if it has
  /// read the record, or waits for the lock (R104).
  Status lock_contended(uint32_t i);
  /// Makes the early lock of entry i a lock of the commit (R106). Returns false if there is none.
  ATOLL_STEP bool take_over_early(uint32_t i);
  /// Returns true if the transaction has read the record, and its read set is short.
  bool has_read(const RecordHead* record) const;
  /// Returns true if entry i comes after the entry before it in universal order.
  ATOLL_STEP bool is_in_order(uint32_t i) const {
    return i == 0 || txn_.writes_[i - 1].record < txn_.writes_[i].record;
  }
  ATOLL_STEP bool has_moved(const WriteEntry& /*entry*/, Vid vid) const {
    return vid.is_relocated();
  }
  ATOLL_STEP bool write_still_fits(const WriteEntry& entry, const RecordHead& record,
                                   Vid vid) const;
  bool are_as_of_snapshot() const;
  /// R18: returns true if the version is newer than the snapshot that the transaction reads.
  bool is_past_snapshot(Vid vid) const { return vid.epoch() > txn_.snapshot_->epoch(); }
  ATOLL_STEP bool was_written_since_snapshot(Vid vid) const { return is_past_snapshot(vid); }
  ATOLL_STEP bool was_removed_since_snapshot(Vid vid) const { return is_past_snapshot(vid); }
  Status track_writes();
  void unlock(uint32_t count);

  // -- Epoch --------------------------------------------------------------------------------------
  /// Publishes `lower_bound` as the in-commit epoch, then loads the commit epoch (R21).
  ATOLL_STEP void enter_epoch(uint64_t lower_bound);
  /// Clears the in-commit epoch: the logger that closes the epoch no longer waits for this worker.
  ATOLL_STEP void leave_epoch();
  /// Clears the in-commit epoch, then releases all locks.
  ATOLL_STEP void leave_epoch_and_unlock();
  /// Ends a commit that wrote nothing: cancels its appends, leaves the epoch and releases the
  /// locks.
  ATOLL_STEP void leave_commit();
  ATOLL_STEP bool is_last_epoch() const { return commit_epoch_ >= kMaxEpoch; }
  /// Waits until the commit epoch is over (R16). Returns ok, cluster_failed or deadline_exceeded.
  /// The last possible epoch never ends, so a wait for its end also returns deadline_exceeded.
  Status wait_for_next_epoch();

  // -- Verification -------------------------------------------------------------------------------
  Status verify();
  ATOLL_STEP Status verify_reads();
  ATOLL_STEP Status verify_pointers();
  ATOLL_STEP Status verify_pages();
  /// R108, in commit_absences.cpp.
  Status verify_absences();
  bool is_still_absent(const AbsenceEntry& entry);
  struct Probe {
    LockCode holder;  // of the record's lock; 0: free
    Vid vid;
  };
  ATOLL_STEP Probe probe(const RecordHead& record) const;
  struct MarkedProbe {
    bool is_early;  // the lock has the mark of an early lock (R106)
    Probe probe;
  };
  ATOLL_STEP MarkedProbe probe_with_mark(const RecordHead& record) const;
  /// Returns true if this worker holds the lock, for a write or early.
  ATOLL_STEP bool is_ours(const RecordHead& /*record*/, LockCode holder) const {
    return worker_.locker().is_own(holder);
  }
  bool is_as_read(const ReadEntry& read) const;
  ATOLL_STEP Status verify_read(const ReadEntry& read);
  /// Sets `record` to the current place of a relocated record. Returns false if the record has no
  /// other place, or if the other place is not published yet.
  ATOLL_STEP bool follow(RecordHead*& record);

  // -- Writing ------------------------------------------------------------------------------------
  ATOLL_STEP bool make_vid();
  /// Runs after the verification. Writes the records, publishes the log and releases the locks.
  ATOLL_STEP void write_and_publish();
  void apply();
  void apply_record(const WriteEntry& entry, LogRecord& log, RecordHead& record);
  void apply_add(const WriteEntry& entry, const LogRecord& log, RecordHead& record);
  /// Hands the log records to the logger. REQUIRES: the in-commit epoch is not cleared (R26, R27).
  ATOLL_STEP void publish_log();
  ATOLL_STEP void raise_dirty_epoch() { worker_.record_dirty(commit_epoch_); }
  void record_erasures();

  // -- Appends to sequential storages (R17), in commit_appends.cpp --------------------------------
  Status prepare_appends();
  ATOLL_STEP void begin_appends();
  void apply_appends();
  void cancel_appends();
  Status verify_lists();
  ATOLL_STEP bool is_own_list(const std::atomic<uint64_t>* word) const;
  StorageControl& storage_of(uint32_t storage_id) const {
    return worker_.view().control->storage(storage_id);
  }

  /// Returns true if this worker holds the lock of entry i.
  bool is_locked(uint32_t i) const { return worker_.holds(txn_.write_heads_[i]->lock); }

  RecordHead* record_of(const WriteEntry& entry) const {
    return reinterpret_cast<RecordHead*>(worker_.view().resolve(entry.record));
  }

  Transaction& txn_;
  WorkerContext& worker_;
  uint64_t commit_epoch_ = 0;
  uint64_t max_seen_ = 0;  // largest VID observed, without flags
  Vid vid_;
};

/// Runs the protocol once. In the test build, mutants may change its steps.
#ifdef ATOLL_MUTANTS
Status run_protocol(Transaction& txn, Status (CommitProtocol::*way)());
#else
inline Status run_protocol(Transaction& txn, Status (CommitProtocol::*way)()) {
  return (CommitProtocol(txn).*way)();
}
#endif

}  // namespace atolldb
