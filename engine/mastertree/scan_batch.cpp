// Batches of a scan: next_many. The first record of a page, and each record that is not ordinary,
// comes from next(). The ordinary records after it in the same page form a run. A run needs one
// decision about the bounds, the deadline and own reservations.
#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/hooks/mutants.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/tree_access.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

/// The filled part of a batch.
class MasterTreeCursor::BatchWriter {
 public:
  explicit BatchWriter(const ScanBatch& batch) : batch_(batch) { DCHECK(batch.is_valid()); }

  uint32_t count() const { return count_; }
  size_t left() const { return batch_.rows.size() - count_; }
  bool wants_keys() const { return !batch_.keys.empty(); }
  /// Returns whether a record with a key of at most `key_bytes` bytes fits.
  bool has_room(size_t key_bytes) const {
    return left() != 0 && (!wants_keys() || batch_.keys.size() - key_bytes_ >= key_bytes);
  }
  ScanRow& row() const { return batch_.rows[count_]; }
  uint32_t stride() const { return batch_.stride; }
  std::byte* payload() const { return batch_.payloads.data() + size_t{count_} * batch_.stride; }
  std::byte* key() const { return batch_.keys.data() + key_bytes_; }

  /// Adds the record in `row`, `payload` and `key`.
  void add(uint32_t key_bytes) {
    DCHECK(has_room(key_bytes));
    key_bytes_ += key_bytes;
    ++count_;
  }

 private:
  const ScanBatch& batch_;
  uint32_t count_ = 0;
  size_t key_bytes_ = 0;  // used bytes of batch_.keys
};

Status MasterTreeCursor::next_many(const ScanBatch& batch, uint32_t& count) {
  count = 0;
  if (!batch.is_valid()) return Status::invalid_argument;
  BatchWriter writer(batch);
  for (;;) {
    Status status = may_take_run() ? take_run(writer) : Status::ok;
    if (status != Status::ok) return status;
    // next() may reach a key of any length, and the cursor cannot step back.
    if (!writer.has_room(kMaxTreeKeyBytes)) break;
    status = next();
    if (status == Status::end_of_scan && writer.count() != 0) break;
    if (status == Status::ok) status = take_current(writer);
    if (status != Status::ok) return status;
  }
  leave_record();
  count = writer.count();
  return Status::ok;
}

/// Adds the current record.
Status MasterTreeCursor::take_current(BatchWriter& writer) {
  if (writer.stride() != 0) {
    const Status status = get(writer.payload(), writer.stride());
    if (status != Status::ok) return status;
  }
  ScanRow& row = writer.row();
  row = ScanRow{.vid = seen_, .payload_bytes = payload_bytes_};
  uint32_t key_bytes = 0;
  if (writer.wants_keys()) {
    copy_bytes(writer.key(), key_.data(), key_bytes_);
    key_bytes = key_bytes_;
    row.key = {writer.key(), key_bytes};
    row.ref = ref();
  }
  writer.add(key_bytes);
  return Status::ok;
}

/// Returns whether the cursor has visited a record of the current page, and may visit the following
/// ones without next(). Otherwise next() decides what to do.
bool MasterTreeCursor::may_take_run() const {
  if (depth_ == 0 || ended_ || !visited_) return false;
  if (merge_ != nullptr || is_over_delta_ || !top_->cold.is_null()) return false;
  // This transaction may have inserted records ahead of the cursor since the last seek (R14).
  const bool is_current = reservations_ == txn_->reservations() || fault::batches_miss_own_inserts;
  return is_current && txn_->is_serializable() && !txn_->plans_adds();
}

/// Returns how many of the remaining slots of the page surely lie before the far bound. REQUIRES:
/// the cursor has visited a record of this page.
int64_t MasterTreeCursor::count_inside() const {
  const Frame& current = *top_;
  int64_t count = forward_ ? int64_t{current.ordered} - current.position : current.position + 1;
  DCHECK(count >= 0 && count <= int64_t{current.ordered});
  Bytes bound;
  Bytes rest;
  if (!far_bound(bound)) return count;
  if (bound.empty()) return 0;
  // If the bound is not in this layer, all keys of the layer are on the same side of it. The
  // visited record shows on which one.
  if (!far_rest(rest)) return count;
  const uint64_t slice = slice_of(rest);
  const uint64_t* slices = current.page->slices();
  const int64_t step = forward_ ? 1 : -1;
  while (count > 0 && slices[current.slot_at(current.position + step * (count - 1))] == slice) {
    --count;
  }
  return count;
}

/// Adds the following ordinary records of the page. Stops at the first other one, and where a batch
/// or the page ends. A record without flags in its VID is ordinary: it exists, it is in this page,
/// and no worker is writing it.
Status MasterTreeCursor::take_run(BatchWriter& writer) {
  DCHECK(may_take_run());
  const Status usable = txn_->check_volatile();
  if (usable != Status::ok) return usable;
  Frame& current = frame();
  const size_t above = prefix().size();
  const bool may_be_own = !txn_->plans_no_write() && !fault::batches_hide_own_writes;
  std::array<std::byte, kMaxTreeKeyBytes + 8> own_key;
  TreeRecord* last = nullptr;
  uint32_t last_slot = 0;
  Status status = Status::ok;
  const size_t end = std::min(static_cast<size_t>(count_inside()), writer.left());
  for (size_t i = 0; i < end; ++i) {
    const uint32_t slot = current.slot_at(current.position);
    TreeRecord* record = current.page->record(slot);
    prefetch_record(kRecordsAhead);
    const Vid seen = record->head.load_acquire();
    const bool is_ordinary = seen.word() == seen.version();
    if (!is_ordinary || !writer.has_room(above + 8 + record->suffix_bytes())) break;
    const uint32_t payload_bytes = record->payload_bytes.load(std::memory_order_acquire);
    racy_read(writer.payload(), record->payload(), std::min(writer.stride(), payload_bytes));
    // racy_read ends with an acquire fence, so the loads above come before this load.
    if (record->head.load_acquire() != seen) break;
    uint32_t key_bytes = 0;
    ScanRow& row = writer.row();
    row = ScanRow{.vid = seen, .payload_bytes = payload_bytes};
    if (writer.wants_keys() || may_be_own) {
      std::byte* const key = writer.wants_keys() ? writer.key() : own_key.data();
      key_bytes = copy_key(record, current.page->slices()[slot], key);
      const Bytes view(key, key_bytes);
      RecordRef ref = make_ref(txn_->worker(), record, view);
      // A record that this transaction writes is not ordinary (R14).
      if (may_be_own && txn_->find_write(ref, view) != nullptr) break;
      if (writer.wants_keys()) {
        ref.payload_bytes = static_cast<uint16_t>(payload_bytes);
        row.key = view;
        row.ref = ref;
      } else {
        key_bytes = 0;
      }
    }
    if (!fault::batches_register_nothing) status = txn_->register_read(&record->head, seen);
    if (status != Status::ok) break;
    writer.add(key_bytes);
    last = record;
    last_slot = slot;
    advance();
  }
  // A seek continues after the last visited record.
  if (last != nullptr) put_key(last, current.page->slices()[last_slot]);
  return status;
}

}  // namespace atolldb
