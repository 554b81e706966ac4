// Ordered scan of a Master-tree, forward or backward. Source: [FOEDUS15] appendix C. Rules R6, R12,
// R14.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/format/tree_key.h"
#include "engine/mastertree/copied_records.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/mastertree.h"
#include "engine/mastertree/prefetch.h"
#include "engine/mastertree/snapshot_tree.h"
#include "engine/transaction/transaction.h"
#include "shared/base/check.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

/// A key and the place of its record.
struct ScannedRecord {
  std::array<std::byte, kMaxTreeKeyBytes + 8> key_bytes;
  uint32_t key_length = 0;
  uint32_t payload_bytes = 0;
  RecordRef ref;
  Vid seen;

  Bytes key() const { return Bytes(key_bytes).first(key_length); }
};

/// State of a cursor that merges the transaction's own writes into the records of a snapshot.
struct SnapshotScan {
  /// Compares two keys in the direction of the scan.
  int order(Bytes left, Bytes right) const {
    const int ascending = compare_keys(left, right);
    return is_forward ? ascending : -ascending;
  }

  bool is_forward = true;
  bool is_at_end = false;   // the snapshot has no further record in the range
  bool has_ahead = false;   // `ahead` is the snapshot's next record, not returned yet
  bool has_record = false;  // the cursor has a current record
  bool has_returned = false;
  ScannedRecord ahead;
  std::vector<std::byte> returned;  // key of the last returned record
  std::vector<uint32_t> own;        // indexes of planned writes in the range, in scan order
  size_t own_at = 0;                // next entry of `own`
  uint32_t planned = 0;             // number of the transaction's writes already examined
};

/// A record of a batch. See ScanBatch.
struct ScanRow {
  Bytes key{};                 // in ScanBatch::keys; empty if the caller wants no keys
  RecordRef ref{};             // incomplete; use MasterTreeCursor::ref
  Vid vid{};                   // as MasterTreeCursor::vid
  uint32_t payload_bytes = 0;  // whole length of the payload
};

/// Buffers of the caller for the records that `MasterTreeCursor::next_many` returns.
struct ScanBatch {
  std::span<ScanRow> rows{};        // one for each record; at least one
  std::span<std::byte> payloads{};  // at least rows.size() * stride bytes
  uint32_t stride = 0;              // bytes of each payload to copy: payload i is at i * stride
  std::span<std::byte> keys{};      // for the keys; empty: none, else at least kMaxTreeKeyBytes

  bool is_valid() const {
    return !rows.empty() && payloads.size() / rows.size() >= stride &&
           (keys.empty() || keys.size() >= kMaxTreeKeyBytes);
  }
};

class MasterTreeCursor;

/// State of a cursor that merges the records of the delta tree into those of the tree (R79).
struct DeltaMerge {
  std::unique_ptr<MasterTreeCursor> delta;  // over the same range of the delta tree
  bool has_main = false;                    // `main` is the next record, not returned yet
  bool main_has_ended = false;
  bool has_delta = false;  // the current record of `delta` is the next one, not returned yet
  bool delta_has_ended = false;
  bool knows_main = false;  // `main` is the last record that the walk has found
  ScannedRecord main;
  uint64_t plan_changes = 0;  // Transaction::plan_changes() when the records were read
  bool has_returned = false;
  ScannedRecord returned;  // only its key: that of the last returned record
};

/// Bounds of a scan. If `has_low` or `has_high` is false, the scan has no bound on that side.
struct ScanRange {
  Bytes low{};
  bool has_low = false;
  bool low_inclusive = true;
  Bytes high{};
  bool has_high = false;
  bool high_inclusive = false;
};

/// Cursor over the records of a range.
///
/// Visibility: the cursor sees the own writes of its transaction. It registers every page that it
/// visits, and every record except stable tombstones. The page word covers stable tombstones (R12);
/// the cursor observes their newest VID (R15, R19).
///
/// Lifetime: the range's bytes must outlive the cursor. The cursor must not outlive the attempt of
/// its transaction.
///
/// Route: one border page per layer. After the last record of a volatile page the cursor descends
/// again to the page's fence in the same layer. This works after any reorganization, because fences
/// are immutable. The interior pages on that path are still in the processor's caches.
///
/// Where there is no volatile page, the cursor continues in the snapshot's pages. The pointer that
/// led there is registered, and covers all data below it. Snapshot pages never change. A forward
/// scan takes the next child of the parent, which was prefetched. It descends again if the parent
/// has no further child. A backward scan always descends. The cursor keeps the names of snapshot
/// pages, because an address is valid in one round of the cache only (R39). It copies the records
/// of these pages in turns, each in one round: first a few records, later whole pages. So most
/// calls of next() and get() use the cache neither for the record nor for its payload.
///
/// If a snapshot page is missing in the cache, the cursor reads it together with the pages that the
/// scan visits next (ScanAhead). It waits for the device once per batch, in both directions.
///
/// At the first pointer with a delta mark the cursor opens a second cursor, over the delta tree,
/// and merges the records of both (delta_cursor.cpp).
///
/// In a transaction that reads a snapshot, the whole route is in the snapshot. The cursor merges
/// own writes in (snapshot_cursor.cpp).
class MasterTreeCursor {
 public:
  MasterTreeCursor(const MasterTree& tree, Transaction& txn, const ScanRange& range, bool forward);
  MasterTreeCursor(const MasterTreeCursor&) = delete;
  MasterTreeCursor& operator=(const MasterTreeCursor&) = delete;
  ~MasterTreeCursor();

  /// Moves to the next existing record. Returns end_of_scan after the last one.
  Status next() {
    const Status status = move();
    if (status == Status::ok) ++returned_;
    return status;
  }

  /// Moves over the next records and copies them to the buffers of the batch. `count`: number of
  /// records; the batch need not be full. Afterwards there is no current record, and the next call
  /// of next() or next_many() continues after the batch. Returns end_of_scan if there is no further
  /// record, and invalid_argument if a buffer is too small. If the result is not ok, `count` is 0.
  ///
  /// Registers the same as next() and get() for each record. Checks bounds, deadline and own
  /// reservations once for neighbouring records of a page. So it is the faster call for scans of
  /// more than some ten records. Shorter ones are faster with next() and get().
  Status next_many(const ScanBatch& batch, uint32_t& count);

  /// Key of the current record. Valid until the next call of next().
  Bytes key() const { return {key_.data(), key_bytes_}; }
  uint32_t payload_bytes() const { return payload_bytes_; }
  /// Copies at most `capacity` bytes of the payload. Returns read_conflict if the record has
  /// changed since next(), or not_found if this transaction has erased it since. Returns
  /// invalid_argument if there is no current record: before the first next(), and after a next()
  /// that did not return ok.
  Status get(void* out, uint32_t capacity) {
    const Status checked = txn_->check();
    if (checked != Status::ok) return checked;
    if (txn_->plans_no_write() && capacity <= payload_bytes_ && ref_.record != nullptr) {
      racy_read(out, ref_.payload(), capacity);
      // The VID is the one that next() has read, so no other transaction has written in between.
      if (ref_.record->load_acquire() == seen_) [[likely]]
        return Status::ok;
    }
    return get_slowly(out, capacity);
  }
  /// VID of the current record as it was read. Snapshots keep VIDs too (R36).
  Vid vid() const { return seen_; }
  /// Place of the current record, for update and erase. Empty if there is no current record.
  const RecordRef& ref() {
    if (!ref_is_complete_) complete_ref();
    return ref_;
  }
  /// Place of a record of a batch, for update and erase. REQUIRES: the latest call of next_many has
  /// filled the row, with its key.
  const RecordRef& ref(ScanRow& row) const {
    // The place of a record is not 0, because its page has a header. An own insert of a transaction
    // that reads a snapshot has no record.
    if (row.ref.record != nullptr && row.ref.place == 0) complete_ref(row.ref, row.key);
    return row.ref;
  }

 private:
  static constexpr uint32_t kInlineFrames = 3;
  /// Number of records that a scan prefetches.
  static constexpr int64_t kRecordsAhead = 8;
  /// Bytes of records that a scan copies first from snapshot pages. Each turn copies twice as many.
  static constexpr uint32_t kFirstCopiedBytes = 256;
  /// Payloads of longer records are copied only after the caller has read a payload.
  static constexpr uint32_t kShortRecordBytes = 128;
  /// Number of records before the end of a page at which the scan prefetches the next page.
  static constexpr int64_t kPageAhead = 16;

  /// One border page of the route, with its slots in key order.
  struct Frame {
    Link root;                  // link to the root page of the layer
    SnapshotPointer cold_root;  // not null: the layer is in a snapshot, and `root` is not used
    // The page. For a snapshot page also its name, its place in the parent, and the cache round in
    // which its address is valid (R39).
    BorderPage* page;
    SnapshotPointer cold;
    SnapshotPlace place;
    uint64_t round;
    // Lines of the page that the scan probably visits next, which were not prefetched yet: from
    // `next_cold` to `next_cold_end`. The page may be evicted meanwhile.
    const std::byte* next_cold;
    const std::byte* next_cold_end;
    uint64_t page_low;
    uint64_t page_high;
    bool page_high_is_end;
    PageVersion version;
    uint32_t ordered;  // number of slots that can lie within the bounds
    bool ascending;    // slots are consecutive from `first`; otherwise `order` lists them
    uint32_t first;
    // Number of removable tombstones that this scan has examined in the page. When it reaches half
    // of the page's slots, the cursor queues a compaction hint.
    uint32_t tombstones;
    // Position of the next slot among the `ordered` ones; -1 or `ordered` if no slot is left.
    int64_t position;
    // Slices of the bounds. If `slices_decide` is true, keys between these slices need no
    // comparison with the bounds. It is false in all layers but the first, and if the far bound is
    // the empty key.
    uint64_t low_slice;
    uint64_t high_slice;
    bool slices_decide;
    std::array<uint8_t, kBorderSlotBound> order;

    bool is_within(int64_t at) const { return at >= 0 && at < ordered; }
    /// Number of slots that are left. REQUIRES: `position` is within them, or past their end.
    int64_t left(bool forward) const { return forward ? ordered - position : position + 1; }
    /// Prefetches the first two lines of a record. Most records have more than one, and the line
    /// after a short record has a neighbour of it.
    void prefetch(int64_t at) const {
      if (!is_within(at)) return;
      const auto* const record = reinterpret_cast<const std::byte*>(page->record(slot_at(at)));
      __builtin_prefetch(record);
      __builtin_prefetch(record + 64);
    }
    /// Makes prefetch_next_cold prefetch a page, apart from the lines that prefetch_scanned_page
    /// has prefetched. `next` may be null.
    void expect_next_cold(const PageHeader* next) {
      constexpr size_t kPrefetched = size_t{kScannedLines} * kLineBytes;
      const auto* const start = reinterpret_cast<const std::byte*>(next);
      next_cold = next == nullptr ? nullptr : start + kPrefetched;
      next_cold_end = next == nullptr ? nullptr : start + kPageBytes - kPrefetched;
    }
    /// Prefetches one line of the next page. The scan calls this for each record, so the next page
    /// is in the processor's caches when the scan copies its records.
    void prefetch_next_cold() {
      if (next_cold == next_cold_end) return;
      __builtin_prefetch(next_cold);
      next_cold += kLineBytes;
    }
    uint32_t slot_at(int64_t at) const {
      DCHECK(is_within(at));
      return ascending ? first + static_cast<uint32_t>(at) : order[static_cast<size_t>(at)];
    }
  };
  static_assert(kBorderSlotBound <= 256);

  Bytes prefix() const {
    DCHECK(depth_ != 0);
    return {prefix_.data(), (depth_ - 1) * size_t{8}};
  }
  Frame& frame() {
    DCHECK(top_ != nullptr);
    return *top_;
  }
  /// Makes layer number `depth` (1 ...) the current one.
  void set_depth(uint32_t depth);
  bool start_bound(Bytes& bound) const;
  bool far_bound(Bytes& bound) const;
  /// Sets `rest` to the part of the far bound in this layer. Returns false if the bound is not in
  /// this layer.
  bool far_rest(Bytes& rest) const;
  /// Returns the slice of the far bound if that bound is in this layer. Otherwise returns the last
  /// slice in scan direction: the largest one forward, 0 backward.
  uint64_t far_slice() const;
  ScanAhead scan_ahead(const DualPointer* link) const;

  Status move();
  Status seek();
  Status walk();
  Status end_without_record(Status status);
  Status open_layer(const Link& root, SnapshotPointer cold_root, bool at_bound);
  Status open_page(uint64_t slice);
  Status open_missing(const MissingPage& missing, uint64_t slice);
  Status open_cold_page(SnapshotPointer root, uint64_t slice, const DualPointer* link = nullptr);
  Status open_next_cold_page(uint64_t fence);
  Status end_at_unreadable(Status status);
  void take_page(BorderPage* page, SnapshotPointer cold, PageVersion version);
  void take_cold_page(const SnapshotBorder& border, uint64_t slice);
  /// Updates the frame's address of its snapshot page. The address is valid until the worker gets
  /// another snapshot page (R39).
  Status hold_page();
  void copy_records();
  void order_slots(uint64_t slice);
  Status leave_page();
  /// Prefetches the record that is `ahead` steps after the next one.
  void prefetch_record(int64_t ahead) {
    const Frame& current = frame();
    current.prefetch(current.position + (forward_ ? ahead : -ahead));
  }
  void prefetch_next_page();
  void advance() { frame().position += forward_ ? 1 : -1; }
  Status visit(bool& found);
  Status visit_record(TreeRecord* record, uint64_t slice, bool& found);
  // Not inlined, so that next() stays short; next() calls visit() for nearly every record.
  [[gnu::noinline]] Status visit_cold(bool& found);
  bool passes_bounds(uint64_t slice);
  Status enter_layer(TreeRecord* record, uint64_t slice);
  uint32_t copy_key(const TreeRecord* record, uint64_t slice, std::byte* to) const;
  void put_key(const TreeRecord* record, uint64_t slice);
  void complete_ref();
  void complete_ref(RecordRef& ref, Bytes key) const;
  // The functions below fill batches (scan_batch.cpp).
  class BatchWriter;
  bool may_take_run() const;
  int64_t count_inside() const;
  Status take_run(BatchWriter& batch);
  Status take_cold_run(BatchWriter& batch);
  void copy_cold_run(BatchWriter& batch);
  bool is_own(TreeRecord* record, uint64_t slice) const;
  Status take_current(BatchWriter& writer);
  void leave_record();
  Status get_slowly(void* out, uint32_t capacity);
  Status get_cold(void* out, uint32_t capacity);
  Status get_cold_or_own(void* out, uint32_t capacity);
  bool may_be_outside(uint64_t slice);
  bool before_start(Bytes key) const;
  bool past_far_bound(Bytes key) const;
  bool fence_ends_scan(uint64_t fence) const;
  void pass_stable_tombstones();
  void count_tombstone(Vid vid, uint64_t removable);
  // The functions below merge records of the delta tree in. A cursor over the delta tree also
  // returns deleted records, because they hide records of the snapshot.
  void begin_delta_merge();
  Status begin_merged_scan(Status found);
  Status next_in_both();
  Status restart_merge();
  Status read_main();
  void keep_main();
  void place_after(const DeltaMerge& merge);
  Status visit_delta_tombstone(TreeRecord* record, uint64_t slice, bool& found);
  Status close_pending(TreeRecord* record, uint64_t slice, bool& is_closed);
  // The functions below are for transactions that read a snapshot.
  Status next_in_snapshot();
  Status open_snapshot();
  void begin_merge();
  Status read_ahead();
  void find_own_writes();
  void take_record(Bytes key, uint32_t payload_bytes, const RecordRef& ref, Vid seen);
  Status get_in_snapshot(void* out, uint32_t capacity);

  MasterTree tree_;
  Transaction* txn_;
  ScanRange range_;
  bool forward_;
  bool ended_ = false;
  Status end_ = Status::end_of_scan;  // if ended_: the status that ended the scan
  bool visited_ = false;              // key_ has its key, or a later skipped one
  bool has_resume_ = false;           // the route starts after resume_, not at the range's bound
  uint64_t reservations_ = ~uint64_t{0};  // Transaction::reservations() at the latest seek
  uint64_t returned_ = 0;                 // records returned, counted as operations at the end
  uint32_t cold_pages_visited_ = 0;       // snapshot pages that the scan has left for the next one

  uint32_t depth_ = 0;
  Frame* top_ = nullptr;  // frame of layer `depth_`
  std::array<Frame, kInlineFrames> frames_;
  // Deeper layers (keys with long common prefixes) allocate their frame once per cursor.
  std::vector<std::unique_ptr<Frame>> deep_frames_;
  std::array<std::byte, MasterTree::kMaxKeyBytes + 8> prefix_;
  std::array<std::byte, MasterTree::kMaxKeyBytes + 8> key_;
  std::array<std::byte, MasterTree::kMaxKeyBytes + 8> resume_;
  uint32_t key_bytes_ = 0;
  uint32_t resume_bytes_ = 0;
  RecordRef ref_;
  bool ref_is_complete_ = true;  // ref_ has place and identity, or there is no current record
  Vid seen_;
  uint32_t payload_bytes_ = 0;
  std::unique_ptr<SnapshotScan> scan_;  // null: no own writes to merge with the snapshot
  std::unique_ptr<DeltaMerge> merge_;   // null: no record of the delta tree to merge
  bool is_over_delta_ = false;          // the cursor scans the delta tree
  bool is_hidden_ = false;              // over the delta tree: the current record is deleted
  bool reads_payloads_ = false;         // the caller has read the payload of a snapshot's record
  uint32_t copied_bytes_ = kFirstCopiedBytes;  // bytes of records that the next turn copies
  CopiedRecords copied_;  // of snapshot pages; the last member, because it is large
};

}  // namespace atolldb
