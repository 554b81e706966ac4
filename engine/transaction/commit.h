// The commit protocol (foedus.txt Algorithm 2 and section 8.2; design: transactions, commit; rules
// R11, R14-R16, R19, R21-R23).
//
// The steps: engine/README.md, "A commit".
//
// Why it is serializable: between steps 2 and 5 every written record is locked, and every record
// read still has the VID that was read and is locked by nobody else. So all reads and writes can be
// thought to happen at 2.
#pragma once

#include <cstdint>

#include "engine/mutants.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

class CommitProtocol {
 public:
  explicit CommitProtocol(Transaction& txn) : txn_(txn), worker_(*txn.worker_) {}

  /// Locks, verifies, writes. On anything but ok nothing has been written and nothing is locked.
  Status commit_writes();
  /// Verifies only. Sets the epoch that the answer depends on (R19).
  Status commit_read_only();

 private:
  Status lock_writes();
  /// One go through the write set: waits for each lock. `moved`: a record did, nothing is locked.
  Status lock_writes_once(bool& moved);
  Status lock_in_order(uint32_t& locked, uint32_t& remote, bool& moved);
  Status track_writes();
  bool are_as_of_snapshot() const;
  Status verify();
  struct Look {
    uint64_t tail;  // of the lock: 0 = free
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
  /// Hands the log records to the logger, before the epoch may be closed (R26, R27).
  void publish_log();
  void note_erased_records();
  /// Whoever closes the epoch need not wait for us any more.
  void leave_epoch();
  /// Without having written: lets go of the appends that were begun, the epoch and the locks.
  void leave_commit();
  void unlock(uint32_t count);
  /// R16. deadline_exceeded, too, in the last epoch that there is; cluster_failed.
  Status wait_for_next_epoch();

  /// Of a lock word that is not 0: we are the last in its queue.
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
