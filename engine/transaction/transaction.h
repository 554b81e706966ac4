// A transaction on one worker (foedus.txt Algorithm 2, made multi-process; rules R11-R23). Reused
// from one transaction to the next; allocates nothing after construction.
//
// Life: begin -> operations of storages -> commit or rollback. An operation that returns an abort
// status (`is_abort`) has ended the attempt: call `rollback`. engine/transaction/run.h has the
// loop with retries; procedures never call begin, commit or rollback themselves. One thread's: not
// shared.
//
// One that reads a snapshot (R18) has its SnapshotView from begin to end. Storages answer it from
// the roots there, and never from volatile pages; what it reads is in no set, since it never
// changes. Its writes hold whole records, so that a look-up finds either an own write or the
// snapshot's record, and are planned, locked and applied like all others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/log/worker_log.h"
#include "engine/mutants.h"
#include "engine/snapshot/snapshot_view.h"
#include "engine/transaction/access_sets.h"
#include "engine/transaction/vid.h"
#include "engine/transaction/worker_context.h"
#include "engine/transaction/write_index.h"
#include "shared/isolation.h"
#include "shared/status.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

enum class IncrementType : uint8_t { none = 0, i32, i64, u32, u64, f64 };
/// Of a number of this type; 0: no such type.
uint32_t increment_bytes(IncrementType type);

/// A record that an operation has found: spares a second look-up when it is then written. Valid
/// until the end of the transaction. Process-local.
struct RecordRef {
  RecordHead* record = nullptr;
  uint16_t payload_at = 0;     // bytes from `record`, or from the snapshot's page, to the payload
  uint16_t payload_bytes = 0;  // current length of the payload
  uint32_t storage_id = 0;
  uint64_t place = 0;     // the word of `record`'s name, or of the snapshot's page
  uint64_t identity = 0;  // hash of storage and key (identity_of): survives moves

  /// REQUIRES: `record` is not null.
  UniversalName name() const { return UniversalName(place); }
  /// REQUIRES: `record` is null. This page holds it, for reading only; null: no page does.
  SnapshotPointer snapshot() const { return SnapshotPointer(place); }
  std::byte* payload() const { return reinterpret_cast<std::byte*>(record) + payload_at; }
};
// Look-ups in batches fill and copy many: two vector registers each.
static_assert(sizeof(RecordRef) == 32);

/// Hash of what a record is, wherever it moves. Its top 8 bits pick the bit of the write filter.
inline uint64_t identity_of(uint32_t storage_id, std::span<const std::byte> key) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15ull;
  uint64_t hash = (storage_id + 1) * kMultiplier;
  size_t at = 0;
  for (; at + 8 <= key.size(); at += 8) {
    uint64_t word;
    __builtin_memcpy(&word, key.data() + at, 8);
    hash = (hash ^ word ^ (hash >> 29)) * kMultiplier;
  }
  for (; at < key.size(); ++at) {
    hash = (hash ^ static_cast<uint64_t>(key[at]) ^ (hash >> 29)) * kMultiplier;
  }
  // Keys are mostly big-endian: their last byte sits in a word's top bits and must reach all
  // others.
  hash = (hash ^ (hash >> 32)) * kMultiplier;
  return hash ^ (hash >> 29);
}

/// The same for a record of an array.
inline uint64_t identity_of(uint32_t storage_id, uint64_t index) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15ull;
  const uint64_t hash = (index ^ (uint64_t{storage_id} + 1) << 40) * kMultiplier;
  return hash ^ (hash >> 32);
}

class Transaction {
 public:
  /// `local`: limits.local_bytes() bytes, 64-byte aligned, of the node's `local` segment.
  Transaction(WorkerContext& worker, const TransactionLimits& limits, std::byte* local);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // -- Life, called by run.h ------------------------------------------------------------------
  /// `deadline_epoch`: engine calls fail with deadline_exceeded from that epoch on (R20).
  /// Waits at admission for room in the log, without a begin epoch (R23). snapshot_not_found;
  /// invalid_argument for a mode that names a snapshot and is not snapshot_read_only.
  Status begin(uint64_t deadline_epoch = kMaxEpoch, TransactionMode mode = {});
  /// ok, or the reason for the abort (everything is rolled back then).
  Status commit();
  /// Verifies what was read, as a read-only commit would, and discards the writes: a user abort
  /// may be reported only then (R20).
  Status commit_user_abort();
  /// Nothing when not active. `reason` is what the metrics count. When the attempt was about to
  /// install a page itself whose absence it relied on, the next one installs pages where it reads
  /// (R5).
  void rollback(Status reason);

  bool is_active() const { return state_ != State::idle; }
  bool is_read_only() const { return writes_size_ == 0 && appends_.empty(); }
  /// After an ok commit: epoch to wait for before acknowledging (R19 for read-only ones).
  uint64_t commit_epoch() const { return commit_epoch_; }
  /// Of this worker's latest commit that wrote records.
  Vid last_vid() const { return last_vid_; }

  // -- For storages ---------------------------------------------------------------------------
  WorkerContext& worker() { return *worker_; }
  const WorkerContext& worker() const { return *worker_; }
  /// First thing in every operation: active, before its deadline.
  Status check() const {
    if (worker_->current_epoch() >= worker_->deadline_epoch() && !mutant(Mutant::ignore_deadline)) {
      return Status::deadline_exceeded;
    }
    return is_active() ? Status::ok : Status::invalid_argument;
  }
  /// The same for an operation that goes on to volatile pages: not ok either for a transaction that
  /// reads a snapshot, which has a way of its own. So the usual one asks one question.
  Status check_volatile() const {
    if (worker_->current_epoch() >= worker_->deadline_epoch() && !mutant(Mutant::ignore_deadline)) {
      return Status::deadline_exceeded;
    }
    return is_serializable() || (mutant(Mutant::snapshot_read_volatile) && is_active())
               ? Status::ok
               : Status::invalid_argument;
  }
  bool is_serializable() const { return state_ == State::serializable; }
  /// What it reads, if it reads a snapshot; else null.
  const SnapshotView* snapshot() const { return snapshot_; }
  /// check, for the storages' ways through snapshots; `writes`: read_only_transaction for one that
  /// must not.
  Status check_snapshot(bool writes);

  /// Reads [offset, offset+count) of the payload into `out` consistently, with own pending writes
  /// laid over it (R14), and enters the record in the read set. `seen`: the VID; when it is
  /// `is_elsewhere`, nothing was read or registered: look again there. Deleted (and not inserted
  /// by this transaction): registered (R12), not_found.
  /// `key`: as for find_write.
  Status read(const RecordRef& ref, uint32_t offset, uint32_t count, void* out, Vid& seen,
              std::span<const std::byte> key = {});
  /// The same for a record that always exists and never moves: an array's. read_conflict: its page
  /// was dropped since it was found (R8). Inline: where the sizes are constants the copy becomes a
  /// few moves.
  Status read_existing(const RecordRef& ref, uint32_t offset, uint32_t count, void* out) {
    Vid seen = ref.record->load_acquire();
    const bool is_here =
        mutant(Mutant::use_dropped_pages) ? !seen.is_being_written() : seen.is_in_place();
    if (is_here) [[likely]] {
      racy_read(out, ref.payload() + offset, count);
      if (ref.record->load_acquire() == seen) [[likely]] {
        const Status status = register_read(ref.record, seen);
        if (status != Status::ok || find_write(ref) == nullptr) return status;
      }
    }
    return read_in_place(ref, offset, count, out, seen);
  }
  /// The same, and its VID.
  Status read_in_place(const RecordRef& ref, uint32_t offset, uint32_t count, void* out, Vid& seen);
  /// Enters a record whose VID decided a read without copying the payload.
  Status register_read(RecordHead* record, Vid seen) {
    // Several fields of one record, one after the other: one entry is enough.
    if (!reads_.empty()) {
      const ReadEntry& last = reads_[reads_.size() - 1];
      if (last.record == record && last.seen == seen) return Status::ok;
    }
    return reads_.push({record, seen}) ? Status::ok : fail(Status::transaction_too_large);
  }
  Status register_pointer(const DualPointer* pointer, uint64_t word);
  Status register_page(PageHeader* page, PageVersion seen);
  /// A word of a sequential storage that a scan depends on (R17).
  Status register_word(const std::atomic<uint64_t>& word, uint64_t seen);
  /// R5: true if `pointer` is in the own pointer set.
  bool depends_on(const DualPointer* pointer);
  /// R5: the previous attempt would have installed a page over a pointer that it depended on: this
  /// one installs pages already where it only reads.
  bool installs_on_read() const { return installs_on_read_; }
  /// R13: a system transaction of this worker changed `page` from `before` to `after`.
  /// phantom: an entry did not match.
  Status page_changed(PageHeader* page, PageVersion before, PageVersion after);
  /// R13: a system transaction of this worker changed the VID of a dead record.
  void record_changed(const RecordHead* record, Vid before, Vid after);
  /// Something other than a read-set entry answers for what was seen (a settled dead record, an
  /// append), but whoever wrote it was observed (R15, R19).
  void observe(Vid seen) {
    if (!mutant(Mutant::forget_skipped_dead) && seen.version() > observed_)
      observed_ = seen.version();
  }
  /// R13 for a page that was split or replaced by this worker: entries for it become entries for
  /// its successors, and so do own reads of dead records that were left out. phantom: an entry did
  /// not match; transaction_too_large.
  Status page_replaced(PageHeader* page, PageVersion before,
                       std::span<const PageVersionEntry> successors,
                       std::span<const ReadEntry> left_out);

  /// The pending write to the record, or null (256-bit filter first: R14). Goes by storage and key,
  /// never by place: records move, and refs and entries may name different places by now. Arrays
  /// leave the key out: identities of one array are all different.
  WriteEntry* find_write(const RecordRef& ref, std::span<const std::byte> key = {}) {
    const auto bit = static_cast<uint32_t>(ref.identity >> 56);
    return ((filter_[bit >> 6] >> (bit & 63)) & 1) != 0 ? find_write_slow(ref, key) : nullptr;
  }
  /// The same for a record of a Master-tree that need not have a place.
  WriteEntry* find_write(uint32_t storage_id, std::span<const std::byte> key) {
    if (plans_no_write()) return nullptr;  // saves the hash
    RecordRef ref;
    ref.storage_id = storage_id;
    ref.identity = identity_of(storage_id, key);
    return find_write(ref, key);
  }
  /// All that is planned, in no order.
  std::span<const WriteEntry> planned_writes() const { return {writes_, writes_size_}; }
  /// No record has a pending write: there is nothing to find or to lay over.
  bool plans_no_write() const { return writes_size_ == 0; }
  /// A write was planned over a record that lived and was not read: nothing but the commit would
  /// notice that the record dies.
  void note_blind_write() { writes_blindly_ = true; }
  bool writes_blindly() const { return writes_blindly_; }
  /// Own writes that a scan cannot see any more: this attempt is over.
  Status miss_own_write() { return fail(Status::write_conflict); }
  /// Whether a pending write names exactly this place.
  bool has_write_at(UniversalName name) const;
  LogRecord& log_of(const WriteEntry& entry) { return log_.at(entry.log_offset); }

  /// Lays the pending write over bytes [offset, offset+count) that were read from the record when
  /// its VID was `seen`. A pending increment is completed first, which reads the record (R14, R33).
  /// write_conflict: it was erased since the write was planned; read_conflict: it has changed.
  Status overlay(const RecordRef& ref, WriteEntry& entry, Vid seen, uint32_t offset, uint32_t count,
                 void* out);

  /// Makes a pending increment a plain update of the value that the record has now, and reads the
  /// record: its existence and its length have been answered (R33). `expected`: the VID that the
  /// caller has read the record with. write_conflict: the record is gone, or is shorter than what
  /// is incremented; not_found: it is dead; read_conflict: it has changed.
  Status materialize_increment(RecordRef ref, WriteEntry& entry, const Vid* expected = nullptr);

  /// Plans a write; merges it into the pending write of the same record, if any (R14).
  /// `insert`: the record (reserved or dead) exists with this payload afterwards.
  Status write_insert(const RecordRef& ref, std::span<const std::byte> key,
                      std::span<const std::byte> payload);
  Status write_update(const RecordRef& ref, std::span<const std::byte> key, uint32_t offset,
                      std::span<const std::byte> bytes);
  Status write_erase(const RecordRef& ref, std::span<const std::byte> key);
  /// Completed under the lock (R33): no read-set entry, so no conflict between increments.
  Status write_increment(const RecordRef& ref, std::span<const std::byte> key, uint32_t offset,
                         IncrementType type, const void* delta);
  /// Plans an append to a sequential storage, applied at commit after verification.
  Status write_append(StorageControl* storage, std::span<const std::byte> payload);

  /// The next pending append to this storage from number `index` on; `index` moves behind it.
  bool own_append(uint32_t storage_id, uint32_t& index, std::span<const std::byte>& payload);

  /// Appends in one transaction: each may need a page, and pages are taken before the locks.
  static constexpr uint32_t kMaxAppends = PageAllocator::kMaxReserve;

  /// Whether this transaction sees the record as existing, given its VID: own inserts and erases
  /// count.
  bool is_visible(const RecordRef& ref, std::span<const std::byte> key, Vid seen);

  /// Number of records this transaction has reserved: a cursor re-opens its page when it changed.
  uint64_t reservations() const { return reservations_; }
  void count_reservation() { ++reservations_; }

  uint32_t read_set_size() const { return reads_.size(); }
  uint32_t pointer_set_size() const { return pointers_.size(); }
  uint32_t page_version_set_size() const { return pages_.size(); }

 private:
  friend class CommitProtocol;

  struct AppendEntry {
    uint32_t storage_id;
    uint32_t log_offset;
  };

  WriteEntry* find_write_slow(const RecordRef& ref, std::span<const std::byte> key);
  static bool has_room_for(const RecordRef& ref, uint32_t payload_end);
  bool follow(RecordRef& ref, uint32_t payload_end);
  Status read_where_it_is(RecordRef ref, std::span<const std::byte> key, uint32_t offset,
                          uint32_t count, void* out);
  Status await_log_room(uint64_t deadline_epoch);
  /// A filler, until it carries a planned write. Null: no room; `no_log_room` says what to answer.
  LogRecord* allocate_log(uint32_t storage_id, std::span<const std::byte> key,
                          uint32_t payload_bytes);
  /// transaction_too_large, or log_buffer_full: it fits once the logger has caught up.
  Status no_log_room() {
    return fail(log_.is_too_large() ? Status::transaction_too_large : Status::log_buffer_full);
  }
  Status add_write(const RecordRef& ref, LogRecord* log, LogType type, IncrementType increment);
  Status merge_update(const RecordRef& ref, std::span<const std::byte> key, WriteEntry& entry,
                      uint32_t offset, std::span<const std::byte> bytes);
  /// What a commit verifies of planned writes under their locks; a user abort takes no locks (R20).
  /// The records of pending increments exist and are long enough: they enter the read set (R33).
  /// Every other record is still where reads and scans of this transaction could meet it (R14).
  /// read_conflict otherwise.
  Status verify_planned_writes();
  void clear();
  /// Not active any more.
  void end();
  /// The sets do not say any more what was read: whatever the procedure makes of `reason`, this
  /// attempt cannot commit, nor can its user abort be reported (R20).
  Status fail(Status reason) {
    broken_ = reason;
    return reason;
  }

  WorkerContext* worker_;
  TransactionLimits limits_;
  enum class State : uint8_t { idle, serializable, snapshot, snapshot_read_only };
  State state_ = State::idle;
  bool installs_on_read_ = false;
  bool relied_on_absence_ = false;  // of a page that this attempt was about to install (R5)
  Status broken_ = Status::ok;      // why the sets are incomplete
  const SnapshotView* snapshot_ = nullptr;
  uint64_t commit_epoch_ = 0;
  uint64_t reservations_ = 0;
  uint64_t observed_ = 0;  // VID word, flags masked out
  Vid last_vid_;           // of this worker's latest commit
  std::array<uint64_t, 4> filter_{};

  FixedSet<ReadEntry> reads_;
  FixedSet<PointerEntry> pointers_;
  FixedSet<PageVersionEntry> pages_;
  FixedSet<WordEntry> words_;
  FixedSet<AppendEntry> appends_;
  WriteIndex write_index_;
  WriteEntry* writes_;  // in the `local` segment
  uint32_t writes_size_ = 0;
  bool erases_ = false;          // some write erases a record
  bool writes_blindly_ = false;  // note_blind_write
  // Where the records of `writes_` are in this process, from the locks to the end of the commit.
  std::unique_ptr<RecordHead*[]> write_heads_;
  WorkerLog log_;
};

}  // namespace atolldb
