// The commit protocol with steps that tests switch off, and with the sync points between its steps.
// Only the engine for mutant tests compiles this file.
#include <sched.h>

#include <algorithm>
#include <utility>

#include "engine/format/tree_record.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/transaction/commit.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"

namespace atolldb {

class FaultyCommit final : public CommitProtocol {
 public:
  explicit FaultyCommit(Transaction& txn) : CommitProtocol(txn) {}

  Status commit_read_only() override {
    if (fault::read_only_publishes) {
      worker_.slot().in_commit_epoch.store(worker_.current_epoch(), std::memory_order_seq_cst);
    }
    return CommitProtocol::commit_read_only();
  }

  /// The check would find some of what a faulty verification accepts.
  Status check_reads() override {
    return active_mutant.load(std::memory_order_relaxed) == Mutant::none
               ? CommitProtocol::check_reads()
               : Status::ok;
  }

  Status verify_user_abort() override {
    const Status status = CommitProtocol::verify_user_abort();
    return fault::unverified_user_abort ? Status::ok : status;
  }

 protected:
  // -- Locks --------------------------------------------------------------------------------------
  void sort() override {
    if (!fault::unsorted_locks) CommitProtocol::sort();
  }
  bool is_in_order(uint32_t i) const override {
    return fault::unsorted_locks || CommitProtocol::is_in_order(i);
  }

  Status lock_in_order(uint32_t& locked, uint32_t& remote, bool& moved) override {
    const Status status = CommitProtocol::lock_in_order(locked, remote, moved);
    if (status != Status::ok || moved) return status;
    reach(SyncPoint::locked_writes);
    if (fault::vid_ignores_locked_record) max_seen_ = 0;
    return status;
  }

  Status lock_write(uint32_t i) override {
    reach(SyncPoint::locking_write);
    if (!fault::unnamed_locks) return CommitProtocol::lock_write(i);
    return worker_.locker().lock(txn_.write_heads_[i]->lock, UniversalName());
  }
  bool take_over_early(uint32_t i) override {
    if (!fault::keep_early_mark_in_commit) return CommitProtocol::take_over_early(i);
    if (early_write_ != kNoWrite || !is_locked(i)) return false;
    early_write_ = i;
    return true;
  }

  bool has_moved(const WriteEntry& entry, Vid vid) const override {
    const bool is_ignored = fault::use_dropped_pages && is_array_write(entry);
    return CommitProtocol::has_moved(entry, vid) && !is_ignored;
  }

  bool write_still_fits(const WriteEntry& entry, const RecordHead& record, Vid vid) const override {
    if (!is_array_write(entry)) {
      const LogRecord& log = txn_.log_of(entry);
      const auto& tree_record = reinterpret_cast<const TreeRecord&>(record);
      if (fault::revive_unannounced && log.type == LogType::insert && vid.is_stable_tombstone()) {
        return log.payload_bytes <= tree_record.capacity;
      }
      if (fault::update_tombstones && log.type == LogType::update) {
        return log.payload_offset + log.payload_bytes <=
               tree_record.payload_bytes.load(std::memory_order_relaxed);
      }
    }
    return CommitProtocol::write_still_fits(entry, record, vid);
  }

  bool was_written_since_snapshot(Vid vid) const override {
    return !fault::snapshot_write_unchecked && CommitProtocol::was_written_since_snapshot(vid);
  }
  bool was_removed_since_snapshot(Vid max_removed_vid) const override {
    return !fault::snapshot_reserve_unchecked &&
           CommitProtocol::was_removed_since_snapshot(max_removed_vid);
  }

  // -- Epoch --------------------------------------------------------------------------------------
  void enter_epoch(uint64_t lower_bound) override {
    reach(SyncPoint::loaded_epoch);
    CommitProtocol::enter_epoch(lower_bound);
    if (fault::epoch_before_in_commit) commit_epoch_ = lower_bound;
    if (fault::append_after_in_commit) CommitProtocol::begin_appends();
  }

  void leave_epoch_and_unlock() override {
    leave_epoch();
    if (fault::dirty_after_in_commit && has_published_) worker_.record_dirty(commit_epoch_);
    unlock(txn_.writes_size_);
  }

  void leave_commit() override {
    end_early_mark();
    if (!fault::keep_locks_on_failure) return CommitProtocol::leave_commit();
    cancel_appends();
    leave_epoch();
  }

  bool is_last_epoch() const override {
    const bool is_last = CommitProtocol::is_last_epoch() && !fault::await_any_epoch;
    if (!is_last) reach(SyncPoint::awaiting_epoch);
    return is_last;
  }

  // -- Verification -------------------------------------------------------------------------------
  Status verify_reads() override {
    if (fault::skip_read_set_check) return Status::ok;
    const Status status = CommitProtocol::verify_reads();
    if (fault::reserved_counts_as_commit && status == Status::ok) {
      for (const ReadEntry& read : txn_.reads_) {
        max_seen_ = std::max(max_seen_, read.seen.version());
      }
    }
    return status;
  }
  Status verify_pointers() override {
    return fault::skip_pointer_set_check ? Status::ok : CommitProtocol::verify_pointers();
  }
  Status verify_pages() override {
    return fault::skip_page_version_check ? Status::ok : CommitProtocol::verify_pages();
  }

  Probe probe(const RecordHead& record) const override {
    if (fault::vid_before_lock) {
      const Vid vid(record.vid.load(std::memory_order_seq_cst));
      reach(SyncPoint::verifying_read);
      return {record.lock.holder.load(std::memory_order_seq_cst), vid};
    }
    const LockCode holder = record.lock.holder.load(std::memory_order_seq_cst);
    reach(SyncPoint::verifying_read);
    return {holder, Vid(record.vid.load(std::memory_order_seq_cst))};
  }

  MarkedProbe probe_with_mark(const RecordHead& record) const override {
    if (!fault::vid_before_early_mark) return CommitProtocol::probe_with_mark(record);
    const Probe now = probe(record);
    reach(SyncPoint::verifying_mark);
    return {record.lock.is_early(), now};
  }

  Status verify_read(const ReadEntry& read) override {
    if (fault::excuse_own_writes) {
      // Checks every place of the record for an own write, until a place is not relocated.
      RecordHead* record = read.record;
      do {
        if (worker_.holds(record->lock)) return Status::ok;
      } while (record->load_acquire().is_relocated() && follow(record));
    }
    return CommitProtocol::verify_read(read);
  }

  bool follow(RecordHead*& record) override {
    if (!fault::wait_in_verification) return CommitProtocol::follow(record);
    uint16_t payload_at = 0;
    return ops_of(record).track_moved(worker_, record, payload_at);
  }

  /// The protocol calls this only for records whose VID is as read, and that another worker may
  /// have locked.
  bool is_ours(const RecordHead& record, LockCode holder) const override {
    if (fault::skip_lock_check) return true;
    return CommitProtocol::is_ours(record, holder) ||
           (fault::planned_writes_excuse_locks && txn_.has_write_at(worker_.name_of(&record)));
  }

  // -- Writing ------------------------------------------------------------------------------------
  bool make_vid() override {
    if (CommitProtocol::make_vid()) return true;
    if (!fault::ignore_used_up_ordinals) return false;
    // make_vid fails only if the ordinals of the epoch are used up. The mutant then takes the
    // ordinal after the last one.
    vid_ = Vid::make(commit_epoch_, Vid::kMaxOrdinal + 1);
    return true;
  }

  void write_and_publish() override {
    if (fault::clear_in_commit_early) leave_epoch();
    reach(SyncPoint::verified);
    end_early_mark();
    if (fault::unlock_before_publish) {
      unlock(txn_.writes_size_);
      sched_yield();
      apply();
      leave_epoch();
      return;
    }
    CommitProtocol::write_and_publish();
  }

  void publish_log() override {
    CommitProtocol::publish_log();
    has_published_ = true;
    reach(SyncPoint::applied);
  }
  void raise_dirty_epoch() override {
    if (!fault::clean_epochs && !fault::dirty_after_in_commit) CommitProtocol::raise_dirty_epoch();
  }

  // -- Appends ------------------------------------------------------------------------------------
  void begin_appends() override {
    if (!fault::append_after_in_commit) CommitProtocol::begin_appends();
  }
  bool is_own_list(const std::atomic<uint64_t>* word) const override {
    return fault::excuse_any_odd_list || CommitProtocol::is_own_list(word);
  }

 private:
  static constexpr uint32_t kNoWrite = ~0u;

  /// Takes over the early lock that the commit should have taken over before its verification.
  void end_early_mark() {
    const uint32_t write = std::exchange(early_write_, kNoWrite);
    if (write != kNoWrite) CHECK(CommitProtocol::take_over_early(write));
  }

  bool has_published_ = false;
  uint32_t early_write_ = kNoWrite;  // a write whose lock is still the first early one
};

Status run_protocol(Transaction& txn, Status (CommitProtocol::*way)()) {
  FaultyCommit protocol(txn);
  return (protocol.*way)();
}

}  // namespace atolldb
