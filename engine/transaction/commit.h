// The commit protocol (R11, R14-R16, R19, R21-R23). Source: [FOEDUS15] Algorithm 2 and section 8.2.
//
// engine/README.md, "A commit", lists the steps.
//
// The protocol is serializable. Between steps 2 and 5 every written record is locked. Every record
// read still has the VID that was read, and no other worker holds its lock. So all reads and writes
// appear to happen at step 2.
#pragma once

#include <cstdint>

#include "engine/hooks/mutants.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

class CommitProtocol {
 public:
  explicit CommitProtocol(Transaction& txn) : txn_(txn), worker_(*txn.worker_) {}

  /// Locks, verifies, writes. If the status is not ok, nothing is written and nothing is locked.
  Status commit_writes();
  /// Verifies only. Sets the epoch that the reply to the client depends on (R19).
  Status commit_read_only();

 private:
  Status lock_writes();
  /// Locks the write set once, in order, and waits for each lock. Sets `moved` if a record has
  /// moved; then nothing is locked.
  Status lock_writes_once(bool& moved);
  Status lock_in_order(uint32_t& locked, uint32_t& remote, bool& moved);
  Status track_writes();
  bool are_as_of_snapshot() const;
  Status verify();
  struct Look {
    uint64_t tail;  // tail of the lock; 0: free
    Vid vid;
  };
  static Look look_at(const RecordHead& record);
  bool is_as_read(const ReadEntry& read) const;
  Status verify_read(const ReadEntry& read);
  bool write_still_fits(const WriteEntry& entry, const RecordHead& record, Vid vid) const;
  bool in_write_set(const RecordHead* record) const;
  bool make_vid();
  void apply();
  void apply_record(const WriteEntry& entry, LogRecord& log, RecordHead& record);
  // Appends to sequential storages (R17), in commit_appends.cpp.
  Status prepare_appends();
  void begin_appends();
  void apply_appends();
  void cancel_appends();
  Status verify_lists();
  bool is_own_list(const std::atomic<uint64_t>* word) const;
  StorageControl& storage_of(uint32_t storage_id) const {
    return worker_.view().control->storage(storage_id);
  }
  /// Hands the log records to the logger. REQUIRES: the in-commit epoch is not cleared (R26, R27).
  void publish_log();
  void note_erased_records();
  /// Clears the in-commit epoch: the logger that closes the epoch no longer waits for this worker.
  void leave_epoch();
  /// Ends a commit that wrote nothing: cancels its appends, leaves the epoch and releases the
  /// locks.
  void leave_commit();
  void unlock(uint32_t count);
  /// R16. Also returns deadline_exceeded if the commit epoch is the last possible one, and
  /// cluster_failed.
  Status wait_for_next_epoch();

  /// True if this worker is the last in the lock's queue. REQUIRES: `tail` is not 0.
  bool is_ours(uint64_t tail) const { return (tail >> 16) == worker_.id(); }
  /// Entry i of the sorted write set locks with block i + 1 (R22, R25).
  static uint32_t block_of(uint32_t i) { return mutant(Mutant::lock_blocks_from_zero) ? i : i + 1; }

  RecordHead* record_of(const WriteEntry& entry) const {
    return reinterpret_cast<RecordHead*>(worker_.view().resolve(entry.record));
  }

  Transaction& txn_;
  WorkerContext& worker_;
  uint64_t commit_epoch_ = 0;
  uint64_t max_seen_ = 0;  // VID word, flags masked out
  Vid vid_;
};

}  // namespace atolldb
