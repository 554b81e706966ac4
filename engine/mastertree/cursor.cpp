#include "engine/mastertree/cursor.h"

#include <algorithm>
#include <cstring>

#include "engine/format/slot_search.h"
#include "engine/hooks/mutants.h"
#include "engine/mastertree/delta.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/prefetch.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/snapshot_tree.h"
#include "engine/mastertree/tree_access.h"
#include "engine/transaction/optimistic_read.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

MasterTreeCursor::MasterTreeCursor(const MasterTree& tree, Transaction& txn, const ScanRange& range,
                                   bool forward)
    : tree_(tree), txn_(&txn), range_(range), forward_(forward) {}

MasterTreeCursor::~MasterTreeCursor() {
  if (returned_ != 0 && !is_over_delta_) tree_.handle().count_operations(*txn_, returned_);
}

// -- Bounds ---------------------------------------------------------------------------------------

bool MasterTreeCursor::start_bound(Bytes& bound) const {
  if (has_resume_) {
    bound = {resume_.data(), resume_bytes_};
    return true;
  }
  bound = forward_ ? range_.low : range_.high;
  return forward_ ? range_.has_low : range_.has_high;
}

bool MasterTreeCursor::far_bound(Bytes& bound) const {
  bound = forward_ ? range_.high : range_.low;
  return forward_ ? range_.has_high : range_.has_low;
}

bool MasterTreeCursor::before_start(Bytes key) const {
  if (has_resume_) {
    const int order = compare_keys(key, {resume_.data(), resume_bytes_});
    return forward_ ? order <= 0 : order >= 0;
  }
  if (forward_ ? !range_.has_low : !range_.has_high) return false;
  const int order = forward_ ? compare_keys(key, range_.low) : compare_keys(range_.high, key);
  return order < 0 || (order == 0 && !(forward_ ? range_.low_inclusive : range_.high_inclusive));
}

bool MasterTreeCursor::may_be_outside(uint64_t slice) {
  const Frame& frame = this->frame();
  return !frame.slices_decide || slice <= frame.low_slice || slice >= frame.high_slice;
}

bool MasterTreeCursor::far_rest(Bytes& rest) const {
  Bytes bound;
  const size_t above = prefix().size();
  const bool is_here = far_bound(bound) && bound.size() > above &&
                       std::memcmp(bound.data(), prefix_.data(), above) == 0;
  if (is_here) rest = bound.subspan(above);
  return is_here;
}

uint64_t MasterTreeCursor::far_slice() const {
  Bytes rest;
  if (far_rest(rest)) return slice_of(rest);
  return forward_ ? ~uint64_t{0} : 0;
}

/// Returns which pages the scan visits next. `link`: as in ScanAhead.
ScanAhead MasterTreeCursor::scan_ahead(const DualPointer* link) const {
  const uint64_t last = forward_ ? ~uint64_t{0} : 0;
  ScanAhead ahead{last, scan_distance(cold_pages_visited_), forward_, link};
  Bytes rest;
  if (!far_rest(rest)) return ahead;
  ahead.end = slice_of(rest);
  // If the bound is exactly the fence of a page, all keys of that page are past it. A fence stands
  // for the key without its trailing zero bytes, as in fence_ends_scan.
  const bool is_fence = rest.size() <= 8 && rest.back() != std::byte{0};
  DCHECK(!is_fence || ahead.end != 0);
  if (forward_ && !range_.high_inclusive && is_fence) --ahead.end;
  return ahead;
}

bool MasterTreeCursor::past_far_bound(Bytes key) const {
  Bytes bound;
  if (!far_bound(bound)) return false;
  const int order = forward_ ? compare_keys(key, bound) : compare_keys(bound, key);
  return order > 0 || (order == 0 && !(forward_ ? range_.high_inclusive : range_.low_inclusive));
}

/// Returns whether all keys beyond the fence are past the far bound. Forward, the remaining keys of
/// the layer have slices >= `fence`; backward, they have smaller slices. A key may be shorter than
/// a slice, so the function compares the fence without its trailing zero bytes.
bool MasterTreeCursor::fence_ends_scan(uint64_t fence) const {
  Bytes bound;
  if (!far_bound(bound)) return false;
  const Frame& frame = *top_;
  if (frame.slices_decide) {
    // Comparing slices is enough for most fences.
    if (forward_ ? fence > frame.high_slice : fence <= frame.low_slice) return true;
    if (!forward_ || fence < frame.high_slice) return false;
  }
  std::array<std::byte, sizeof(prefix_)> bytes;
  const size_t prefix_bytes = prefix().size();
  std::memcpy(bytes.data(), prefix_.data(), prefix_bytes);
  put_slice(fence, bytes.data() + prefix_bytes);
  size_t length = prefix_bytes + 8;
  while (length > prefix_bytes && bytes[length - 1] == std::byte{0}) --length;
  const int order = compare_keys({bytes.data(), length}, bound);
  return forward_ ? order > 0 || (order == 0 && !range_.high_inclusive) : order <= 0;
}

// -- Route ----------------------------------------------------------------------------------------

void MasterTreeCursor::set_depth(uint32_t depth) {
  DCHECK(depth <= depth_ + 1);
  depth_ = depth;
  if (depth == 0) return;
  if (depth > kInlineFrames + deep_frames_.size()) {
    deep_frames_.push_back(std::make_unique_for_overwrite<Frame>());
  }
  top_ =
      depth <= kInlineFrames ? &frames_[depth - 1] : deep_frames_[depth - 1 - kInlineFrames].get();
}

/// Starts the route after the last visited key, or where the latest route has started. A route may
/// begin with keys before its start, for example those of the layer below its slice. If it is left
/// among them, they must not move the start: the scan would return keys past its bound (R46).
Status MasterTreeCursor::seek() {
  depth_ = 0;
  reservations_ = txn_->reservations();
  if (visited_ && (!before_start(key()) || fault::resume_before_start)) {
    has_resume_ = true;
    resume_bytes_ = key_bytes_;
    DCHECK(key_bytes_ <= resume_.size());
    std::memcpy(resume_.data(), key_.data(), key_bytes_);
  }
  const Status usable = tree_.handle().check(*txn_, 0);
  if (usable != Status::ok) return usable;
  Bytes bound;
  const Link root = is_over_delta_ ? delta_link(tree_.storage()) : root_link(tree_.storage());
  return open_layer(root, {}, start_bound(bound));
}

Status MasterTreeCursor::open_layer(const Link& root, SnapshotPointer cold_root, bool at_bound) {
  set_depth(depth_ + 1);
  frame().root = root;
  frame().cold_root = cold_root;
  uint64_t slice = forward_ ? 0 : ~uint64_t{0};
  Bytes bound;
  if (at_bound && start_bound(bound)) slice = slice_of(bound.subspan(prefix().size()));
  return open_page(slice);
}

Status MasterTreeCursor::open_page(uint64_t slice) {
  if (!frame().cold_root.is_null()) return open_cold_page(frame().cold_root, slice);
  const BorderView view = find_border(txn_->worker(), tree_.storage(), frame().root, slice);
  if (view.dropped) {
    const Status moved = await_drop(txn_->worker(), frame().root);
    return moved == Status::ok ? seek() : moved;
  }
  if (view.missing) return open_missing(view.missing, slice);
  const Status status = txn_->register_page(&view.page->header, view.version);
  if (status != Status::ok) return status;
  take_page(view.page, {}, view.version);
  order_slots(slice);
  return Status::ok;
}

Status MasterTreeCursor::open_missing(const MissingPage& missing, uint64_t slice) {
  if (txn_->installs_on_read() && !is_over_delta_ && !writes_to_delta(tree_.storage(), missing)) {
    const Status status = install_missing(*txn_, tree_.storage(), missing, 0);
    return status == Status::ok ? seek() : status;
  }
  const Status status = txn_->register_pointer(missing.pointer, missing.view.page.word());
  if (status != Status::ok) return status;
  if (missing.view.page.has_delta() && merge_ == nullptr) begin_delta_merge();
  if (!missing.view.snapshot.is_null()) {
    // The pointers beside one in a page of level 1 lead to the scan's next border pages. The root
    // of a layer has none beside it.
    const bool is_child = missing.pointer != frame().root.pointer;
    const bool is_border = is_child && page_of(missing.pointer)->level == 1;
    return open_cold_page(missing.view.snapshot, slice, is_border ? missing.pointer : nullptr);
  }
  ended_ = true;  // the tree is empty
  return Status::ok;
}

void MasterTreeCursor::take_page(BorderPage* page, SnapshotPointer cold, PageVersion version) {
  DCHECK(page != nullptr && is_sound(page, version) && !version.is_moved());
  Frame& frame = this->frame();
  frame.page = page;
  frame.cold = cold;
  frame.page_low = page->low;
  frame.page_high = page->high;
  frame.page_high_is_end = page->high_is_end();
  frame.version = version;
  frame.tombstones = 0;
}

/// Finds the slots that can lie within the bounds, and orders them by key.
void MasterTreeCursor::order_slots(uint64_t slice) {
  Frame& frame = this->frame();
  const uint32_t count = frame.version.count();
  const uint64_t* slices = frame.page->slices();
  // The slots must lie within the scan's own range, not only within the page's fences. After a
  // merge the page may also cover keys that the scan has already passed (R46).
  uint64_t low = forward_ ? slice : far_slice();
  uint64_t high = forward_ ? far_slice() : slice;
  if (fault::scan_from_page_fence && forward_) low = frame.page->low;
  Bytes bound;
  frame.low_slice = low;
  frame.high_slice = high;
  frame.slices_decide = depth_ == 1 && (!far_bound(bound) || !bound.empty());
  frame.ordered = 0;
  frame.ascending = frame.version.is_ascending();
  if (frame.ascending) {
    frame.first = frame.page->find_lower_bound(low, count);
    // If no slot is within the bounds, the second count may be the smaller one.
    const uint32_t end = frame.page->count_at_or_below(high, count);
    frame.ordered = std::max(end, frame.first) - frame.first;
  } else {
    for (uint32_t slot = 0; slot < count; ++slot) {
      if (slices[slot] < low || slices[slot] > high) continue;
      frame.order[frame.ordered++] = static_cast<uint8_t>(slot);
    }
    std::sort(frame.order.begin(), frame.order.begin() + frame.ordered, [&](uint8_t a, uint8_t b) {
      if (slices[a] != slices[b]) return slices[a] < slices[b];
      return length_class(frame.page->record(a)->head.remainder) <
             length_class(frame.page->record(b)->head.remainder);
    });
  }
  DCHECK(frame.ordered <= count);
  frame.position = forward_ ? 0 : int64_t{frame.ordered} - 1;
  for (int64_t i = 0; i < kRecordsAhead; ++i) prefetch_record(i);
  if (frame.ordered < kPageAhead) prefetch_next_page();
}

/// Prefetches the page that the scan visits after the current one.
void MasterTreeCursor::prefetch_next_page() {
  const Frame& current = frame();
  const bool is_last = forward_ ? current.page_high_is_end : current.page_low == 0;
  // Only the first layer has a memo. Snapshot pages have prefetches of their own (ScanAhead).
  if (is_last || depth_ != 1 || is_over_delta_ || !current.cold.is_null()) return;
  const uint64_t fence = forward_ ? current.page_high : current.page_low;
  if (fence_ends_scan(fence)) return;
  prefetch_border(txn_->worker(), tree_.storage(), forward_ ? fence : fence - 1);
}

Status MasterTreeCursor::leave_page() {
  const Frame& left = frame();
  const bool at_end = forward_ ? left.page_high_is_end : left.page_low == 0;
  if (at_end) {
    copied_bytes_ = kFirstCopiedBytes;  // the layer above may have few records of its own
    set_depth(depth_ - 1);
    if (depth_ == 0) ended_ = true;
    return Status::ok;
  }
  const uint64_t fence = forward_ ? left.page_high : left.page_low;
  if (fence_ends_scan(fence)) {
    ended_ = true;
    return Status::ok;
  }
  if (!left.cold.is_null()) {
    ++cold_pages_visited_;
    if (forward_) return open_next_cold_page(fence);
  }
  return open_page(forward_ ? fence : fence - 1);
}

// -- Records --------------------------------------------------------------------------------------

Status MasterTreeCursor::move() {
  Status status = txn_->check_volatile();
  if (status != Status::ok) [[unlikely]]
    return txn_->snapshot() == nullptr ? status : next_in_snapshot();
  if (txn_->plans_adds()) [[unlikely]] {
    status = settle_adds(*txn_, tree_.storage());
    if (status != Status::ok) return end_without_record(status);
  }
  if (merge_ != nullptr) [[unlikely]]
    return next_in_both();
  if (ended_) return end_;
  // This transaction may have inserted records ahead of the cursor since the last seek (R14).
  if (reservations_ != txn_->reservations()) status = seek();
  status = status == Status::ok ? walk() : end_without_record(status);
  if (merge_ == nullptr) [[likely]]
    return status;
  return begin_merged_scan(status);
}

/// Moves to the next record on the route.
Status MasterTreeCursor::walk() {
  Status status = Status::ok;
  bool found = false;
  while (status == Status::ok && !ended_ && !found) {
    const Frame& current = frame();
    if (!current.is_within(current.position)) {
      status = leave_page();
    } else {
      status = current.cold.is_null() ? visit(found) : visit_cold(found);
    }
  }
  if (found && status == Status::ok) [[likely]]
    return Status::ok;
  return end_without_record(status == Status::ok ? Status::end_of_scan : status);
}

/// Makes the cursor have no current record.
void MasterTreeCursor::leave_record() {
  ref_ = RecordRef{};
  ref_is_complete_ = true;
  if (scan_ != nullptr) scan_->has_record = false;
}

/// Makes next() return this status. The cursor then has no current record.
Status MasterTreeCursor::end_without_record(Status status) {
  leave_record();
  // The route may be incomplete, so later calls of next() return the same status.
  if (status != Status::end_of_scan) {
    ended_ = true;
    end_ = status;
  }
  return status;
}

Status MasterTreeCursor::visit(bool& found) {
  Frame& current = frame();
  const uint32_t slot = current.slot_at(current.position);
  DCHECK(current.cold.is_null() && slot < current.version.count());
  TreeRecord* record = current.page->record(slot);
  prefetch_record(kRecordsAhead);
  if (current.left(forward_) == kPageAhead) [[unlikely]]
    prefetch_next_page();
  const uint64_t slice = current.page->slices()[slot];
  if (record->head.load_acquire().is_stable_tombstone()) {
    if (is_over_delta_) return visit_delta_tombstone(record, slice, found);
    if (!txn_->writes_blindly() || fault::skip_own_blind_writes) {
      pass_stable_tombstones();
      return Status::ok;
    }
    // This transaction may have planned a write when the record still existed. A scan that skips
    // the tombstone would miss that write, so the attempt ends (R14).
    put_key(record, slice);
    if (txn_->find_write(make_ref(txn_->worker(), record, key()), key()) != nullptr) {
      return txn_->miss_own_write();
    }
    txn_->observe(record->head.load_acquire());
    advance();
    return Status::ok;
  }
  const Status status = read_stable(txn_->worker(), record->head, seen_, [&](Vid) {
    payload_bytes_ = record->payload_bytes.load(std::memory_order_acquire);
  });
  if (status != Status::ok) return status;
  if (seen_.is_moved()) {
    // The page is being replaced: the scan waits, then continues in the successors. The registered
    // version of the page decides whether this attempt can commit.
    const Status moved = await_move(txn_->worker(), &current.page->header);
    return moved == Status::ok ? seek() : moved;
  }
  if (is_over_delta_ && has_pending_add(seen_)) [[unlikely]] {
    bool is_closed = false;
    const Status closed = close_pending(record, slice, is_closed);
    // Visits the closed record again.
    if (closed != Status::ok || is_closed) return closed;
  }
  advance();
  if (seen_.is_next_layer()) return enter_layer(record, slice);
  return visit_record(record, slice, found);
}

/// Visits a record of a snapshot page. Snapshot pages never change, so the cursor registers nothing
/// and never waits. The transaction may have written the record in a volatile page that was dropped
/// since. Then the attempt ends, because the scan would miss that write (R14). The cursor is in a
/// round only while it copies records, because its caller may take long (R57).
Status MasterTreeCursor::visit_cold(bool& found) {
  Frame& current = frame();
  const uint32_t slot = current.slot_at(current.position);
  DCHECK(!current.cold.is_null() && slot < current.version.count());
  if (!copied_.has(current.cold, slot)) {
    const Status held = hold_page();
    if (held == Status::ok) copy_records();
    txn_->worker().leave_snapshots();
    if (held != Status::ok) return held;
  }
  BorderPage* const page = copied_.page();
  TreeRecord* record = page->record(slot);
  current.prefetch_next_cold();
  const uint64_t slice = page->slices()[slot];
  advance();
  const Vid seen = record->head.load_acquire();
  if (seen.is_next_layer()) return enter_layer(record, slice);
  put_key(record, slice);
  if (!passes_bounds(slice)) return Status::ok;
  visited_ = true;
  if (!txn_->plans_no_write() && txn_->snapshot() == nullptr && merge_ == nullptr &&
      txn_->has_lost_write(tree_.handle().id(), key())) {
    return txn_->miss_own_write();
  }
  payload_bytes_ = record->payload_bytes.load(std::memory_order_relaxed);
  seen_ = seen;
  ref_ = RecordRef{};
  ref_.place = current.cold.word();
  ref_.payload_at =
      static_cast<uint16_t>(record->payload() - reinterpret_cast<const std::byte*>(page));
  ref_.payload_bytes = static_cast<uint16_t>(payload_bytes_);
  ref_is_complete_ = true;
  found = true;
  return Status::ok;
}

Status MasterTreeCursor::enter_layer(TreeRecord* record, uint64_t slice) {
  const size_t above = prefix().size();
  const bool is_cold = !frame().cold.is_null();
  const Link root{is_cold ? nullptr : record->next_layer(), is_cold ? nullptr : frame().page};
  const SnapshotPointer cold_root(
      is_cold ? record->next_layer()->snapshot_word.load(std::memory_order_relaxed) : 0);
  DCHECK(above + 8 <= prefix_.size());
  copied_bytes_ = kFirstCopiedBytes;  // the new layer may have few records
  put_slice(slice, prefix_.data() + above);
  Bytes bound;
  const bool at_bound = start_bound(bound) && bound.size() > above + 8 &&
                        std::memcmp(bound.data(), prefix_.data(), above + 8) == 0;
  return open_layer(root, cold_root, at_bound);
}

/// Returns whether key_ is within the range. Ends the scan if key_ is past the far bound.
bool MasterTreeCursor::passes_bounds(uint64_t slice) {
  if (!may_be_outside(slice)) return true;
  if (before_start(key())) return false;
  ended_ = past_far_bound(key());
  return !ended_;
}

Status MasterTreeCursor::visit_record(TreeRecord* record, uint64_t slice, bool& found) {
  DCHECK(!seen_.is_relocated() && !seen_.is_being_written());
  put_key(record, slice);
  if (!passes_bounds(slice)) return Status::ok;
  visited_ = true;
  ref_.record = &record->head;
  ref_.payload_at = record->payload_at();
  ref_is_complete_ = false;
  if (!seen_.is_deleted() || !fault::ignore_tombstones_in_scans) {
    const Status status = txn_->register_read(&record->head, seen_);
    if (status != Status::ok) return status;
  }
  bool visible = !seen_.is_deleted();
  const WriteEntry* own = nullptr;
  if (!txn_->plans_no_write()) {
    complete_ref();
    visible = txn_->is_visible(ref_, key(), seen_);
    own = txn_->find_write(ref_, key());
    if (own != nullptr && txn_->log_of(*own).type == LogType::insert) {
      payload_bytes_ = txn_->log_of(*own).payload_bytes;
    }
  }
  is_hidden_ = !visible;
  // Skips an open record: its VID is registered, and the cursor over the tree returns the record of
  // the snapshot (R82).
  if (seen_.is_open() && own == nullptr && !fault::open_records_hide) return Status::ok;
  if (!visible && !is_over_delta_) {
    count_tombstone(seen_, removable_epoch(txn_->worker()));
    return Status::ok;
  }
  ref_.payload_bytes = static_cast<uint16_t>(payload_bytes_);
  found = true;
  return Status::ok;
}

void MasterTreeCursor::complete_ref() {
  complete_ref(ref_, key());
  ref_is_complete_ = true;
}

void MasterTreeCursor::complete_ref(RecordRef& ref, Bytes key) const {
  DCHECK(ref.record != nullptr);
  ref.storage_id = tree_.storage().id;
  ref.place = txn_->worker().name_of(ref.record).word();
  ref.identity = identity_of(ref.storage_id, key);
}

/// Skips consecutive stable tombstones, which are frequent in tables used as queues. The registered
/// page word stands for them: it changes before an insert can reuse one of them (R12).
void MasterTreeCursor::pass_stable_tombstones() {
  Frame& current = frame();
  const uint64_t removable = removable_epoch(txn_->worker());
  const bool is_run = forward_ && current.ascending;
  const uint32_t first = current.slot_at(current.position);
  TombstoneRunMemo::Run run{&current.page->header, current.version.word(), first, first, {}};
  if (is_run) {
    const TombstoneRunMemo::Run& known = txn_->worker().tombstone_runs().at(run.page);
    if (known.page == run.page && known.page_word == run.page_word && known.first <= first &&
        first < known.end) {
      run = known;
      current.position += known.end - first;
    }
  }
  for (const int64_t step = forward_ ? 1 : -1; current.is_within(current.position);
       current.position += step) {
    const Vid vid = current.page->record(current.slot_at(current.position))->head.load_acquire();
    if (!vid.is_stable_tombstone()) break;
    if (vid.version() > run.latest.version()) run.latest = vid;
    ++run.end;
    count_tombstone(vid, removable);
  }
  txn_->observe(run.latest);
  DCHECK(run.first <= run.end && run.end <= run.first + current.version.count());
  if (is_run) txn_->worker().tombstone_runs().at(run.page) = run;
}

/// Writes the key of a record of the current page to `to`, and returns its length. REQUIRES: `to`
/// has room for kMaxTreeKeyBytes + 8 bytes, or for the bytes above the layer, 8 bytes and the
/// suffix.
uint32_t MasterTreeCursor::copy_key(const TreeRecord* record, uint64_t slice, std::byte* to) const {
  const size_t above = prefix().size();
  copy_bytes(to, prefix_.data(), above);
  put_slice(slice, to + above);
  if (record->head.remainder <= 8) return static_cast<uint32_t>(above) + record->head.remainder;
  std::memcpy(to + above + 8, record->suffix(), record->suffix_bytes());
  return static_cast<uint32_t>(above) + 8 + record->suffix_bytes();
}

void MasterTreeCursor::put_key(const TreeRecord* record, uint64_t slice) {
  key_bytes_ = copy_key(record, slice, key_.data());
  DCHECK(key_bytes_ <= key_.size());
}

void MasterTreeCursor::count_tombstone(Vid vid, uint64_t removable) {
  if (!is_removable(vid, removable)) return;
  Frame& current = frame();
  // Queues one hint per page: when half of the page's records have turned out to be removable.
  if (++current.tombstones != (current.version.count() + 1) / 2) return;
  push_tombstone_hint(txn_->worker(), current.page, prefix(), current.page->low);
}

Status MasterTreeCursor::get_cold(void* out, uint32_t capacity) {
  if (ref_.snapshot().is_null()) return Status::invalid_argument;  // no current record
  reads_payloads_ = true;
  const uint32_t count = std::min(capacity, payload_bytes_);
  const std::byte* from = copied_.payload(ref_.snapshot(), ref_.payload_at, count);
  if (from != nullptr) [[likely]] {
    copy_bytes(out, from, count);
    return Status::ok;
  }
  // The record is long, and this is the first read of a payload. Or the scan has already moved to
  // another record, because it reads the next one ahead.
  const PageHeader* page = nullptr;
  const Status status = txn_->worker().snapshot_page(ref_.snapshot(), page);
  if (status == Status::ok) {
    copy_bytes(out, reinterpret_cast<const std::byte*>(page) + ref_.payload_at, count);
  }
  txn_->worker().leave_snapshots();
  return status;
}

/// Reads a record that was in the snapshot only when next() found it. This transaction may have
/// planned a write to it since, through a volatile record of the tree or of the delta tree (R14).
Status MasterTreeCursor::get_cold_or_own(void* out, uint32_t capacity) {
  DCHECK(txn_->is_serializable() && ref_.record == nullptr);
  if (ref_.snapshot().is_null()) return Status::invalid_argument;  // no current record
  if (txn_->own_write(tree_.handle().id(), key()) == nullptr) return get_cold(out, capacity);
  uint32_t payload_bytes = 0;
  Vid now;
  const Status status = tree_.get(*txn_, key(), out, capacity, payload_bytes, now);
  if (status != Status::ok) return status;
  // The volatile record began with the version of the snapshot. An own write does not change it.
  if (now.version() != seen_.version()) return Status::read_conflict;
  payload_bytes_ = payload_bytes;
  return Status::ok;
}

Status MasterTreeCursor::get_slowly(void* out, uint32_t capacity) {
  if (ref_.record == nullptr) {
    return txn_->snapshot() == nullptr ? get_cold_or_own(out, capacity)
                                       : get_in_snapshot(out, capacity);
  }
  DCHECK(txn_->is_serializable());
  WriteEntry* own = txn_->find_write(ref(), key());
  if (own != nullptr && txn_->log_of(*own).type == LogType::erase) return Status::not_found;
  if (own != nullptr && txn_->log_of(*own).type == LogType::insert) {
    const LogRecord& log = txn_->log_of(*own);
    payload_bytes_ = log.payload_bytes;
    copy_bytes(out, log.payload(), std::min<uint32_t>(capacity, log.payload_bytes));
    return Status::ok;
  }
  const uint32_t count = std::min(capacity, payload_bytes_);
  for (;;) {
    Vid now;
    const Status status = read_stable(txn_->worker(), *ref_.record, now,
                                      [&](Vid) { racy_read(out, ref_.payload(), count); });
    if (status != Status::ok) return status;
    // next() has registered the VID. If the record has changed since, the commit would fail, so
    // this read already fails.
    if (now == seen_) break;
    if (!now.is_relocated()) return Status::read_conflict;
    if (now.is_moved()) {
      const Status moved = await_move(txn_->worker(), page_of(ref_.record));
      if (moved != Status::ok) return moved;
    }
    if (!track_moved(txn_->worker(), ref_.record, ref_.payload_at)) return Status::read_conflict;
    ref_.place = txn_->worker().name_of(ref_.record).word();
  }
  return own == nullptr ? Status::ok : txn_->overlay(ref_, *own, seen_, 0, count, out);
}

}  // namespace atolldb
