// Ordered scan of a Master-tree, forward or backward (foedus.txt appendix C; rules R6, R12, R14).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/mastertree/descent.h"
#include "engine/mastertree/mastertree.h"
#include "engine/mastertree/snapshot_scan.h"
#include "engine/mastertree/snapshot_tree.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

/// Bounds of a scan. An absent bound is unbounded.
struct ScanRange {
  Bytes low{};
  bool has_low = false;
  bool low_inclusive = true;
  Bytes high{};
  bool has_high = false;
  bool high_inclusive = false;
};

/// Sees the own writes of its transaction. Registers every page it looks at and every record but
/// settled dead ones, for which the page word answers (R12); observes the latest VID of those (R15,
/// R19). The range's bytes must outlive the cursor, and the cursor must not outlive the attempt of
/// its transaction.
///
/// The route is one border page a layer. To go on behind the last record of a volatile page the
/// cursor descends again for the page's fence in the same layer: right whatever was reorganised
/// meanwhile, since fences are immutable (the interior pages it passes are in the cache anyway).
///
/// Where there is no volatile page it goes on in the snapshot's: the pointer that led there is
/// registered, and answers for all that is below it. Nothing changes there: forwards the next child
/// of the parent, loaded ahead, is the next page, as long as the parent has one; else, and
/// backwards, it descends. It keeps the names of such pages: an address is good in one round of the
/// cache only (R39). In a transaction that reads a snapshot the whole route is there, and own
/// writes are merged in (snapshot_cursor.cpp).
class MasterTreeCursor {
 public:
  MasterTreeCursor(const MasterTree& tree, Transaction& txn, const ScanRange& range, bool forward);

  /// Moves to the next existing record; end_of_scan when there is none.
  Status next();

  /// Of the current record; valid until the next call of next().
  Bytes key() const { return {key_.data(), key_bytes_}; }
  uint32_t payload_bytes() const { return payload_bytes_; }
  /// Copies at most `capacity` bytes of the payload. invalid_argument: there is no current record,
  /// as far as it can tell (always with a snapshot). read_conflict when the record has changed
  /// since next(); not_found when this transaction has erased it since.
  Status get(void* out, uint32_t capacity) {
    const Status checked = txn_->check();
    if (checked != Status::ok) return checked;
    if (txn_->plans_no_write() && capacity <= payload_bytes_ && ref_.record != nullptr) {
      racy_read(out, ref_.payload(), capacity);
      // The same VID as when next() looked: nobody wrote meanwhile.
      if (ref_.record->load_acquire() == seen_) [[likely]]
        return Status::ok;
    }
    return get_slowly(out, capacity);
  }
  /// VID of the current record as it was read; in a snapshot, too, which keeps VIDs (R36).
  Vid vid() const { return seen_; }
  /// Place of the current record, for update and erase.
  const RecordRef& ref() {
    if (!ref_is_complete_) complete_ref();
    return ref_;
  }

 private:
  static constexpr uint32_t kInlineFrames = 3;

  /// One border page of the route, its slots in key order.
  struct Frame {
    Link root;                  // of the layer
    SnapshotPointer cold_root;  // not null: the layer is in a snapshot, and `root` is not used
    // The page; of a snapshot's, the name, too, and the round that the address is good in (R39).
    BorderPage* page;
    SnapshotPointer cold;
    SnapshotPlace place;  // of `cold`
    uint64_t round;
    uint64_t page_low;
    uint64_t page_high;
    bool page_high_is_end;
    PageVersion version;
    uint32_t ordered;  // slots that can lie within the bounds
    bool ascending;    // they follow each other from `first` on; else `order` lists them
    uint32_t first;
    // Removable records met, without those of a remembered run: a hint for compaction.
    uint32_t dead;
    int64_t position;  // which of the `ordered` slots is next; -1 or `ordered`: none
    // Slices of the bounds. A first layer's keys between them need not be compared with the bounds;
    // below it, and with an empty far bound, the slices alone do not tell.
    uint64_t low_slice;
    uint64_t high_slice;
    bool slices_decide;
    std::array<uint8_t, kBorderSlotBound> order;

    bool is_within(int64_t at) const { return at >= 0 && at < ordered; }
    uint32_t slot_at(int64_t at) const {
      return ascending ? first + static_cast<uint32_t>(at) : order[static_cast<size_t>(at)];
    }
  };
  static_assert(kBorderSlotBound <= 256);

  Bytes prefix() const { return {prefix_.data(), (depth_ - 1) * size_t{8}}; }
  Frame& frame() { return *top_; }
  /// Makes layer number `depth` (1 ...) the one that is walked.
  void set_depth(uint32_t depth);
  bool start_bound(Bytes& bound) const;
  bool far_bound(Bytes& bound) const;
  /// Of the far bound, if that is in this layer; else of the layer's end.
  uint64_t far_slice() const;

  Status seek();
  Status walk();
  Status open_layer(const Link& root, SnapshotPointer cold_root, bool at_bound);
  Status open_page(uint64_t slice);
  Status open_missing(const MissingPage& missing, uint64_t slice);
  Status open_cold_page(SnapshotPointer root, uint64_t slice);
  Status open_next_cold_page(uint64_t fence);
  Status end_at_unreadable(Status status);
  void take_page(BorderPage* page, SnapshotPointer cold, PageVersion version);
  void take_cold_page(const SnapshotBorder& border, uint64_t slice);
  /// R39: makes the address of the frame's snapshot page good, until the worker gets another one.
  Status hold_page();
  void order_slots(uint64_t slice);
  Status leave_page();
  void prefetch_record(int64_t ahead);
  void advance() { frame().position += forward_ ? 1 : -1; }
  Status visit(bool& found);
  Status visit_record(TreeRecord* record, uint64_t slice, bool& found);
  // Not inlined: next() is short, and calls visit() for nearly every record.
  [[gnu::noinline]] Status visit_cold(bool& found);
  bool passes_bounds(uint64_t slice);
  Status enter_layer(TreeRecord* record, uint64_t slice);
  void put_key(const TreeRecord* record, uint64_t slice);
  void complete_ref();
  Status get_slowly(void* out, uint32_t capacity);
  Status get_cold(void* out, uint32_t capacity);
  bool may_be_outside(uint64_t slice);
  bool before_start(Bytes key) const;
  bool behind_far_bound(Bytes key) const;
  bool fence_ends_scan(uint64_t fence) const;
  void pass_settled_dead();
  void note_dead(Vid vid, uint64_t removable);
  // Of a transaction that reads a snapshot.
  Status next_in_snapshot();
  Status open_snapshot();
  void begin_merge();
  Status look_ahead();
  void find_own_writes();
  void take_record(Bytes key, uint32_t payload_bytes, const RecordRef& ref, Vid seen);
  Status get_in_snapshot(void* out, uint32_t capacity);

  MasterTree tree_;
  Transaction* txn_;
  ScanRange range_;
  bool forward_;
  bool ended_ = false;
  Status end_ = Status::end_of_scan;  // why it has ended: or a page that could not be read
  bool visited_ = false;              // key_ is that of a record
  bool has_resume_ = false;           // the route starts behind resume_, not at the range's bound
  uint64_t reservations_ = ~uint64_t{0};  // of the transaction when the route was made

  uint32_t depth_ = 0;
  Frame* top_ = nullptr;  // of layer `depth_`
  std::array<Frame, kInlineFrames> frames_;
  // Layers below that (keys with long common prefixes) allocate their frame once per cursor.
  std::vector<std::unique_ptr<Frame>> deep_frames_;
  std::array<std::byte, MasterTree::kMaxKeyBytes + 8> prefix_;
  std::array<std::byte, MasterTree::kMaxKeyBytes + 8> key_;
  std::array<std::byte, MasterTree::kMaxKeyBytes + 8> resume_;
  uint32_t key_bytes_ = 0;
  uint32_t resume_bytes_ = 0;
  RecordRef ref_;
  bool ref_is_complete_ = false;  // name and identity are there, too
  Vid seen_;
  uint32_t payload_bytes_ = 0;
  std::unique_ptr<SnapshotScan> scan_;  // null: nothing to merge, the snapshot is the whole answer
};

}  // namespace atolldb
