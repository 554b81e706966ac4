// A transaction on one worker (R11-R23). Source: [FOEDUS15] Algorithm 2, extended to several
// processes. The object is reused from one transaction to the next and allocates nothing after
// construction. Thread: the worker's; not shared.
//
// Life cycle: begin, operations of storages, commit or rollback. After an operation has returned an
// abort status (`is_abort`), the attempt has ended: call `rollback`. engine/transaction/run.h has
// the retry loop. Procedures never call begin, commit or rollback themselves.
//
// A transaction that reads a snapshot (R18) keeps its SnapshotView from begin to end. Storages read
// from the roots of that view for it, never from volatile pages. Its reads are in no set, because a
// snapshot never changes. Its writes hold whole records, so a look-up finds either an own write or
// the snapshot's record. They are planned, locked and applied like all other writes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "engine/format/increment.h"
#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/log/worker_log.h"
#include "engine/snapshot/snapshot_view.h"
#include "engine/transaction/access_sets.h"
#include "engine/transaction/worker_context.h"
#include "engine/transaction/write_index.h"
#include "shared/base/check.h"
#include "shared/base/isolation.h"
#include "shared/base/status.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

/// A record that an operation has found. It saves a second look-up when the record is then written.
/// Valid until the end of the transaction. Process-local.
struct RecordRef {
  RecordHead* record = nullptr;
  uint16_t payload_at = 0;     // bytes from `record`, or from the snapshot page, to the payload
  uint16_t payload_bytes = 0;  // current length of the payload
  uint32_t storage_id = 0;
  uint64_t place = 0;     // word of the UniversalName of `record`, or of the snapshot page
  uint64_t identity = 0;  // hash of storage and key (identity_of), unchanged by moves

  /// Returns the universal name of the record. REQUIRES: `record` is not null.
  UniversalName name() const { return UniversalName(place); }
  /// Returns the snapshot page that holds the record, for reading only, or null if there is no such
  /// page. REQUIRES: `record` is null.
  SnapshotPointer snapshot() const { return SnapshotPointer(place); }
  std::byte* payload() const { return reinterpret_cast<std::byte*>(record) + payload_at; }
};
// Batched look-ups fill and copy many refs. A ref of 32 bytes fits into two vector registers.
static_assert(sizeof(RecordRef) == 32);

/// With checkpoints, updates of records up to this length are logged as whole versions (R107). Such
/// a log is a little longer. But a replay need not keep the parts until it has the record.
inline constexpr uint32_t kWholeVersionBytes = 128;

/// Returns a hash of the record, unchanged by moves. The top 8 bits select a write-filter bit.
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
  // Mixes the last byte of the key into all bits of the hash. Most keys are big-endian numbers, so
  // their last byte is in the top bits of a word.
  hash = (hash ^ (hash >> 32)) * kMultiplier;
  return hash ^ (hash >> 29);
}

/// Returns the hash of a record of an array.
inline uint64_t identity_of(uint32_t storage_id, uint64_t index) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15ull;
  const uint64_t hash = (index ^ (uint64_t{storage_id} + 1) << 40) * kMultiplier;
  return hash ^ (hash >> 32);
}

class Transaction {
 public:
  /// `local`: limits.local_bytes() bytes of the node's `local` segment, 64-byte aligned.
  Transaction(WorkerContext& worker, const TransactionLimits& limits, std::byte* local);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // -- Life cycle, called by run.h ------------------------------------------------------------
  /// Begins a transaction. Engine calls fail with deadline_exceeded once the current epoch reaches
  /// `deadline_epoch` (R20). May wait for room in the log, without a begin epoch (R23). Errors:
  /// snapshot_not_found; invalid_argument if `mode` names a snapshot and is not snapshot_read_only.
  Status begin(uint64_t deadline_epoch = kMaxEpoch, TransactionMode mode = {});
  /// Commits. Returns ok, or the reason for an abort, after which everything is rolled back.
  Status commit();
  /// Verifies the reads as a read-only commit does, and discards the writes. The caller may report
  /// a user abort only if this returns ok (R20).
  Status commit_user_abort();
  /// Ends the attempt. Does nothing if the transaction is not active. The metrics count `reason`.
  /// The attempt may end with pointer_installed because it wanted to install a page whose absence
  /// it had read. Then the next attempt installs missing pages even when it only reads (R5).
  void rollback(Status reason);
  /// Ends an attempt that has planned no writes, without counting it. For a replay, which only
  /// finds and reserves records.
  void discard() {
    DCHECK(is_read_only());
    if (is_active()) end();
  }

  /// Makes the next attempt lock the record early (R104). REQUIRES: no transaction is active; the
  /// begin epoch protects the record until the worker leaves it.
  void plan_early_lock(RecordHead* record, UniversalName name) {
    DCHECK(!is_active());
    worker_->early_locks().plan(record, name);
    state_ = State::planned;
  }

  bool is_active() const { return state_ < State::idle; }
  bool is_read_only() const { return writes_size_ == 0 && appends_.empty(); }
  /// Returns the epoch that must be durable before the client gets the reply. R19 defines it for
  /// read-only transactions. REQUIRES: `commit` returned ok.
  uint64_t commit_epoch() const { return commit_epoch_; }
  /// VID of this worker's latest commit that wrote records.
  Vid last_vid() const { return last_vid_; }

  // -- For storages ---------------------------------------------------------------------------
  WorkerContext& worker() { return *worker_; }
  const WorkerContext& worker() const { return *worker_; }
  /// Every operation calls this first. Returns ok if the transaction is active and before its
  /// deadline.
  Status check() const {
    if (is_past_deadline()) return Status::deadline_exceeded;
    return is_active() ? Status::ok : Status::invalid_argument;
  }
  /// Does the same as `check`, for an operation that continues in volatile pages. Also fails if the
  /// transaction reads a snapshot, because storages handle such transactions on another path. So
  /// one test is enough for a serializable transaction.
  Status check_volatile() const {
    if (is_past_deadline()) return Status::deadline_exceeded;
    return may_read_volatile() ? Status::ok : Status::invalid_argument;
  }
  bool is_serializable() const { return state_ <= State::contended; }
  /// Returns the snapshot that the transaction reads, or null.
  const SnapshotView* snapshot() const { return snapshot_; }
  /// Does the same as `check`, for operations on a snapshot. If the operation writes (`writes`) and
  /// the transaction is snapshot_read_only, returns read_only_transaction.
  Status check_snapshot(bool writes);

  /// Reads bytes [offset, offset+count) of the payload into `out` consistently. Applies pending
  /// writes of this transaction to the copy (R14). Sets `seen` to the VID and adds the record to
  /// the read set, even if the record is deleted (R12). If `seen.is_relocated()`, nothing was read
  /// or registered, and the caller must look up the record's new place. Returns not_found if the
  /// record is deleted and this transaction has not inserted it, or if this transaction has erased
  /// it. `key`: empty for a record of an array.
  Status read(const RecordRef& ref, uint32_t offset, uint32_t count, void* out, Vid& seen,
              std::span<const std::byte> key = {});
  /// Does the same as `read`, for a record of an array, which always exists and never moves.
  /// Returns read_conflict if its page was dropped since the record was found (R8). Inline, so that
  /// a copy of constant size becomes a few moves.
  Status read_existing(const RecordRef& ref, uint32_t offset, uint32_t count, void* out) {
    DCHECK(ref.record != nullptr && ref.payload_at == kArrayPayloadAt);
    DCHECK(offset + uint64_t{count} <= ref.payload_bytes);
    Vid seen = ref.record->load_acquire();
    if (is_readable(seen)) [[likely]] {
      racy_read(out, ref.payload() + offset, count);
      if (ref.record->load_acquire() == seen) [[likely]] {
        const Status status = register_read(ref.record, seen);
        if (status != Status::ok || find_write(ref) == nullptr) return status;
      }
    }
    return read_in_place(ref, offset, count, out, seen);
  }
  /// Does the same as read_existing, and sets `seen` to the VID.
  Status read_in_place(const RecordRef& ref, uint32_t offset, uint32_t count, void* out, Vid& seen);
  /// Adds a record to the read set because its VID decided a read. Does not copy its payload.
  Status register_read(RecordHead* record, Vid seen) {
    DCHECK(is_active() && record != nullptr);
    DCHECK(!seen.is_being_written() && !seen.is_relocated());
    // Reads of several fields of one record in sequence need only one entry.
    if (!reads_.empty()) {
      const ReadEntry& last = reads_[reads_.size() - 1];
      if (last.record == record && last.seen == seen) return Status::ok;
    }
    return reads_.push({record, seen}) ? Status::ok : fail(Status::transaction_too_large);
  }
  Status register_pointer(const DualPointer* pointer, uint64_t word);
  Status register_page(PageHeader* page, PageVersion seen);
  /// Registers that `page`, a border page of a delta tree, lacks a key. `key`: its bytes from the
  /// layer of the page on. `below`: version of the snapshot's record, or 0. If the key is long, or
  /// there is no room for it, registers the page word alone (R108).
  Status register_absence(PageHeader* page, PageVersion seen, std::span<const std::byte> key,
                          Vid below);
  /// Adds a word of a sequential storage that a scan depends on (R17).
  Status register_word(const std::atomic<uint64_t>& word, uint64_t seen);
  /// R5: returns true if `pointer` is in the pointer set.
  bool depends_on(const DualPointer* pointer);
  /// R103: returns true if a pointer of the pointer set lies in this page.
  bool has_pointer_in(const PageHeader* page) const;
  /// R5: returns true if the previous attempt wanted to install a page over a pointer that it
  /// depended on. This attempt then installs missing pages even when it only reads.
  bool installs_on_read() const { return installs_on_read_; }
  /// R13: a system transaction of this worker changed the word of `page` from `before` to `after`.
  /// Updates the entries of the page. Returns phantom if an entry has another word than `before`.
  Status page_changed(PageHeader* page, PageVersion before, PageVersion after);
  /// R13: a system transaction of this worker changed a tombstone's VID, or closed an open record
  /// (R82). Updates read entries.
  void record_changed(const RecordHead* record, Vid before, Vid after);
  /// Observes the VID of a stable tombstone or of an append. The record needs no read-set entry,
  /// because the verification of a page word or list word covers it. But the transaction's VID and
  /// the reply to the client depend on the observed commit (R15, R19).
  void observe(Vid seen) {
    if (!fault::forget_skipped_tombstones && seen.version() > observed_) observed_ = seen.version();
  }
  /// R13: this worker has split or replaced `page`. Replaces the page-version entries of `page`,
  /// and the read entries of `elided` tombstones, by page-version entries of the successors.
  /// Returns phantom if a page-version entry differs from `before`, or a read entry from the VID in
  /// `elided`. Returns transaction_too_large if the set is full.
  Status page_replaced(PageHeader* page, PageVersion before,
                       std::span<const PageVersionEntry> successors,
                       std::span<const ReadEntry> elided);

  /// Returns the pending write to the record, or null. Tests a 256-bit filter first (R14). Compares
  /// storage and key, not addresses, because a record may have moved since the write was planned.
  /// Arrays pass no key: two records of one array never have the same identity.
  WriteEntry* find_write(const RecordRef& ref, std::span<const std::byte> key = {}) {
    const auto bit = static_cast<uint32_t>(ref.identity >> 56);
    return ((filter_[bit >> 6] >> (bit & 63)) & 1) != 0 ? find_write_slow(ref, key) : nullptr;
  }
  /// Does the same for a key of a Master-tree, whose record need not be in a volatile page.
  WriteEntry* find_write(uint32_t storage_id, std::span<const std::byte> key) {
    if (plans_no_write()) return nullptr;  // no need to compute the hash
    RecordRef ref;
    ref.storage_id = storage_id;
    ref.identity = identity_of(storage_id, key);
    return find_write(ref, key);
  }
  /// Returns the pending write that a read of this record must see, or null (R14).
  WriteEntry* own_write(const RecordRef& ref, std::span<const std::byte> key = {}) {
    return fault::hide_own_writes ? nullptr : find_write(ref, key);
  }
  WriteEntry* own_write(uint32_t storage_id, std::span<const std::byte> key) {
    return fault::hide_own_writes ? nullptr : find_write(storage_id, key);
  }
  /// Returns true if this transaction plans to write the key. REQUIRES: the caller has found no
  /// volatile record of the key. So the record was dropped with its page, or removed by a
  /// compaction, and a read would miss the write (R14).
  bool has_lost_write(uint32_t storage_id, std::span<const std::byte> key) {
    return find_write(storage_id, key) != nullptr && !fault::cold_hides_own_writes;
  }
  /// Returns all planned writes, in the order in which they were planned. The commit sorts them.
  std::span<const WriteEntry> planned_writes() const { return {writes_, writes_size_}; }
  /// Returns true if no record has a pending write.
  bool plans_no_write() const { return writes_size_ == 0; }
  /// Records that a write was planned over a living record without reading it. If the record is
  /// deleted later, only the commit can notice that.
  void record_blind_write() { writes_blindly_ = true; }
  bool writes_blindly() const { return writes_blindly_; }
  /// Makes this attempt fail, because a scan would miss a write of this transaction.
  Status miss_own_write() { return fail(Status::write_conflict); }
  /// Returns true if a pending write names exactly this place. Does not follow moved records.
  bool has_write_at(UniversalName name) const;
  /// Returns true if a pending write to this storage has a key that ends with these bytes. So a
  /// layer need not know the bytes of a key that lead to it.
  bool has_write_to(uint32_t storage_id, std::span<const std::byte> key_end);
  LogRecord& log_of(const WriteEntry& entry) {
    DCHECK(&entry >= writes_ && &entry < writes_ + writes_size_);
    return log_.at(entry.log_offset);
  }

  /// Applies the pending write to bytes [offset, offset+count), which the caller has read when the
  /// record's VID was `seen`. If the write is an increment, first calls materialize_increment,
  /// which reads the record (R14, R33). Returns write_conflict if the record was erased since the
  /// write was planned, and read_conflict if it has changed.
  Status overlay(const RecordRef& ref, WriteEntry& entry, Vid seen, uint32_t offset, uint32_t count,
                 void* out);

  /// Turns a pending increment into a plain update of the record's current value. Also registers a
  /// read of the record, because the increment's result depends on its existence and length (R33).
  /// `expected`: the VID with which the caller has read the record. Returns not_found if the record
  /// is a tombstone, and read_conflict if its VID is not `expected`. Returns write_conflict if the
  /// record was elided or dropped with its page, or is too short for the increment.
  Status materialize_increment(RecordRef ref, WriteEntry& entry, const Vid* expected = nullptr);

  /// Plans a write, and merges it into the pending write of the same record, if there is one (R14).
  /// `write_insert`: the record exists with this payload afterwards, whatever its state is now.
  /// `write_update`: `record_bytes` is the length of a record of a tree, whose VID this transaction
  /// has registered (R107). 0: the record is always logged in parts.
  Status write_insert(const RecordRef& ref, std::span<const std::byte> key,
                      std::span<const std::byte> payload);
  Status write_update(const RecordRef& ref, std::span<const std::byte> key, uint32_t offset,
                      std::span<const std::byte> bytes, uint32_t record_bytes = 0);
  Status write_erase(const RecordRef& ref, std::span<const std::byte> key);
  /// Plans an increment. The commit computes the sum under the record lock (R33). An increment has
  /// no read-set entry, so increments do not conflict with each other.
  Status write_increment(const RecordRef& ref, std::span<const std::byte> key, uint32_t offset,
                         IncrementType type, const void* delta);
  /// Plans an addition to an open record, for which the snapshot has the number (R83). Bytes that
  /// the payload lacks count as zeros. REQUIRES: this transaction has registered the VID of the
  /// record, and plans no write of the key.
  Status write_add(const RecordRef& ref, std::span<const std::byte> key, uint32_t offset,
                   IncrementType type, const void* delta);
  /// Returns the planned addition to this key, or null.
  WriteEntry* own_add(uint32_t storage_id, std::span<const std::byte> key) {
    if (add_count_ == 0) [[likely]]
      return nullptr;
    WriteEntry* own = find_write(storage_id, key);
    return own != nullptr && log_of(*own).type == LogType::add ? own : nullptr;
  }
  /// Returns true if this transaction plans additions to open records.
  bool plans_adds() const { return add_count_ != 0; }
  /// Adds to a planned addition, if offset and type are the same. Otherwise returns false.
  bool add_to_own(WriteEntry& own, uint32_t offset, IncrementType type, const void* delta);
  /// Plans an append to a sequential storage. The commit applies it after verification.
  Status write_append(StorageControl* storage, std::span<const std::byte> payload);

  /// Finds the next pending append to this storage from number `index` on. Sets `payload`, and
  /// moves `index` past the append. Returns false if there is none.
  bool own_append(uint32_t storage_id, uint32_t& index, std::span<const std::byte>& payload);

  /// Early locks, and commits that end at a lock instead of waiting, are only for transactions with
  /// at most this number of read-set entries. Longer ones would stop many others, or search long.
  static constexpr uint32_t kMostReadsOfShort = 256;

  /// Maximum number of absent keys that the commit can search for again (R108): 64 KiB.
  static constexpr uint32_t kMaxAbsences = 1024;

  /// Maximum number of appends of a transaction: each may need a page, taken before the locks.
  static constexpr uint32_t kMaxAppends = PageAllocator::kMaxReserve;

  /// Returns true if the record with the VID `seen` exists for this transaction. Takes inserts and
  /// erases of this transaction into account.
  bool is_visible(const RecordRef& ref, std::span<const std::byte> key, Vid seen);

  /// Returns how often this transaction has reserved records. A cursor searches again if the number
  /// has changed.
  uint64_t reservations() const { return reservations_; }
  /// Returns how often this transaction has planned a write or changed a planned one.
  uint64_t plan_changes() const { return plan_changes_; }
  void count_reservation() {
    DCHECK(is_active());
    ++reservations_;
  }

  uint32_t read_set_size() const { return reads_.size(); }
  uint32_t pointer_set_size() const { return pointers_.size(); }
  uint32_t page_version_set_size() const { return pages_.size(); }
  uint32_t absence_set_size() const { return absences_.size(); }

 private:
  friend class CommitProtocol;
  friend class FaultyCommit;  // in tests/engine/mutants

  /// The order matters: `is_active` and `is_serializable` need one comparison each. So the state
  /// `contended` costs other attempts nothing.
  enum class State : uint8_t {
    serializable,
    contended,  // serializable; checks its reads before it locks, and may hold early locks
    snapshot,
    snapshot_read_only,
    idle,
    planned,  // idle; the next attempt is contended
  };

  struct AppendEntry {
    uint32_t storage_id;
    uint32_t log_offset;
  };

  bool is_past_deadline() const {
    return worker_->current_epoch() >= worker_->deadline_epoch() && !fault::ignore_deadline;
  }
  bool may_read_volatile() const {
    return is_serializable() || (fault::snapshot_read_volatile && is_active());
  }
  /// Returns whether the payload of an array record with this VID is valid (R8).
  static bool is_readable(Vid vid) {
    return fault::use_dropped_pages ? !vid.is_being_written() : vid.is_in_place();
  }
  /// R13: `page` has changed from `before` to `after`. An entry with another word stays as it is,
  /// because the commit searches for its key again (R108).
  void absences_changed(const PageHeader* page, PageVersion before, PageVersion after);
  /// R13: this worker has replaced `page`. Removes the entries with the word `before`, and returns
  /// whether there were any. The page words of the successors stand for them.
  bool absences_replaced(const PageHeader* page, PageVersion before);
  WriteEntry* find_write_slow(const RecordRef& ref, std::span<const std::byte> key);
  static bool has_room_for(const RecordRef& ref, uint32_t payload_end);
  bool follow(RecordRef& ref, uint32_t payload_end);
  Status read_where_it_is(RecordRef ref, std::span<const std::byte> key, uint32_t offset,
                          uint32_t count, void* out);
  Status await_log_room(uint64_t deadline_epoch);
  /// Allocates a log record. It stays a filler until it carries a planned write. Returns null if
  /// there is no room; then `no_log_room` returns the status.
  LogRecord* allocate_log(uint32_t storage_id, std::span<const std::byte> key,
                          uint32_t payload_bytes);
  /// Returns transaction_too_large, or log_buffer_full if the record fits once the logger has
  /// caught up.
  Status no_log_room() {
    return fail(log_.is_too_large() ? Status::transaction_too_large : Status::log_buffer_full);
  }
  Status add_write(const RecordRef& ref, LogRecord* log, LogType type, IncrementType increment);
  bool is_logged_whole(uint32_t offset, size_t bytes, uint32_t record_bytes) const;
  Status write_whole(const RecordRef& ref, std::span<const std::byte> key, uint32_t offset,
                     std::span<const std::byte> bytes, uint32_t record_bytes);
  Status merge_update(const RecordRef& ref, std::span<const std::byte> key, WriteEntry& entry,
                      uint32_t offset, std::span<const std::byte> bytes);
  /// Checks planned writes for a user abort, which takes no locks (R20). A commit checks them under
  /// the locks. Records of pending increments must exist and be long enough; they enter the read
  /// set (R33). Every other record must still be where reads and scans of this transaction could
  /// find it (R14). Returns read_conflict if a check fails.
  Status verify_planned_writes();
  void clear();
  /// Begins a contended attempt, and takes the planned early locks.
  Status begin_contended(uint64_t deadline_epoch, TransactionMode mode);
  /// Prefetches what the attempt before has read. Other workers have changed some of these records.
  /// If their lines arrive together, a retry takes less time, so fewer commits meet it.
  void prefetch_reads() const;
  /// R104: takes the planned early locks. Goes on without those that it does not get in time.
  void take_early_locks();
  /// If the verification of a read has failed: makes the next attempt a contended one, and plans
  /// early locks for it if many attempts have failed.
  void learn_from_failure();
  /// Returns ok if the commit may go on. Otherwise the attempt has ended. REQUIRES: the state is
  /// not `serializable`.
  Status check_contended();
  uint64_t commits_of_worker() const {
    const WorkerMetrics& metrics = worker_->metrics();
    return metrics.commits.get() + metrics.read_only_commits.get();
  }
  /// Makes the transaction inactive. Only other states than `serializable` have something to
  /// release.
  void end() {
    const State ended = std::exchange(state_, State::idle);
    if (ended != State::serializable) [[unlikely]]
      release_after(ended);
  }
  /// Releases the snapshot or the early locks of an attempt that has ended.
  void release_after(State ended);
  /// Marks the access sets as incomplete. After that, this attempt can neither commit nor report a
  /// user abort, even if the procedure ignores `reason` (R20).
  Status fail(Status reason) {
    DCHECK(is_abort(reason));
    broken_ = reason;
    return reason;
  }

  WorkerContext* worker_;
  TransactionLimits limits_;
  State state_ = State::idle;
  bool installs_on_read_ = false;
  // This attempt wants to install a page at a pointer that is in its pointer set (R5).
  bool relied_on_absence_ = false;
  Status broken_ = Status::ok;  // not ok: the reason why the sets are incomplete
  const SnapshotView* snapshot_ = nullptr;
  uint64_t commit_epoch_ = 0;
  uint64_t reservations_ = 0;
  uint64_t plan_changes_ = 0;
  uint64_t observed_ = 0;  // largest VID passed to observe(), without flags
  Vid last_vid_;           // VID of this worker's latest commit
  std::array<uint64_t, 4> filter_{};

  FixedSet<ReadEntry> reads_;
  FixedSet<PointerEntry> pointers_;
  FixedSet<PageVersionEntry> pages_;
  FixedSet<AbsenceEntry> absences_;
  FixedSet<WordEntry> words_;
  FixedSet<AppendEntry> appends_;
  WriteIndex write_index_;
  WriteEntry* writes_;  // array in the `local` segment
  uint32_t writes_size_ = 0;
  uint32_t add_count_ = 0;       // writes that are additions to open records
  bool erases_ = false;          // some write erases a record
  bool writes_blindly_ = false;  // a write was planned without a read (record_blind_write)
  // Addresses of the records of `writes_` in this process. They are valid from the locking of the
  // records to the end of the commit.
  std::unique_ptr<RecordHead*[]> write_heads_;
  WorkerLog log_;
  // Record whose verification has failed. Null except during `commit` and `commit_user_abort`.
  RecordHead* failed_read_ = nullptr;
};

}  // namespace atolldb
