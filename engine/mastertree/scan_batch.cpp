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
  ScanBatch batch_;
  uint32_t count_ = 0;
  size_t key_bytes_ = 0;  // used bytes of batch_.keys
};

Status MasterTreeCursor::next_many(const ScanBatch& batch, uint32_t& count) {
  count = 0;
  if (!batch.is_valid()) return Status::invalid_argument;
  BatchWriter writer(batch);
  for (;;) {
    Status status = Status::ok;
    if (may_take_run()) status = top_->cold.is_null() ? take_run(writer) : take_cold_run(writer);
    // The rows so far are lost to the caller, so no later call may go on after them.
    if (status != Status::ok) return end_without_record(status);
    // next() may reach a key of any length, and the cursor cannot step back.
    if (!writer.has_room(kMaxTreeKeyBytes)) break;
    status = next();
    if (status == Status::end_of_scan && writer.count() != 0) break;
    if (status != Status::ok) return status;
    status = take_current(writer);
    if (status != Status::ok) return end_without_record(status);
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
    row.ref = ref_;
    if (!ref_is_complete_) row.ref.place = 0;
  }
  writer.add(key_bytes);
  return Status::ok;
}

/// Returns whether the cursor has visited a record of the current page, and may visit the following
/// ones without next(). Otherwise next() decides what to do.
bool MasterTreeCursor::may_take_run() const {
  if (depth_ == 0 || ended_ || !visited_ || merge_ != nullptr || is_over_delta_) return false;
  if (txn_->snapshot() != nullptr) return scan_ == nullptr && txn_->plans_no_write();
  // This transaction may have inserted records ahead of the cursor since the last seek (R14).
  const bool is_current = reservations_ == txn_->reservations() || fault::batches_miss_own_inserts;
  if (!is_current || !txn_->is_serializable() || txn_->plans_adds()) return false;
  // A transaction with writes checks for each cold record whether it has lost a write (R14).
  return top_->cold.is_null() || txn_->plans_no_write();
}

/// Returns how many of the remaining slots of the page surely lie before the far bound. REQUIRES:
/// the cursor has visited a record of this page.
int64_t MasterTreeCursor::count_inside() const {
  const Frame& current = *top_;
  int64_t count = current.left(forward_);
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
Status MasterTreeCursor::take_run(BatchWriter& batch) {
  DCHECK(may_take_run());
  Status status = txn_->check_volatile();
  if (status != Status::ok) return status;
  Frame& current = frame();
  BorderPage* const page = current.page;
  const int64_t step = forward_ ? 1 : -1;
  const int64_t left = current.left(forward_);
  const int64_t count = std::min(count_inside(), static_cast<int64_t>(batch.left()));
  DCHECK(count >= 0 && count <= left);
  if (left >= kPageAhead && left - count < kPageAhead) prefetch_next_page();
  const bool may_be_own = !txn_->plans_no_write() && !fault::batches_hide_own_writes;
  // The bytes that the loop writes may alias the members. A copy stays in registers.
  BatchWriter writer = batch;
  const TreeRecord* last = nullptr;
  int64_t at = current.position;
  for (const int64_t end = at + step * count; at != end; at += step) {
    current.prefetch(at + step * kRecordsAhead);
    const uint32_t slot = current.slot_at(at);
    TreeRecord* const record = page->record(slot);
    const Vid seen = record->head.load_acquire();
    const bool is_ordinary = seen.word() == seen.version();
    if (!is_ordinary || !writer.has_room(prefix().size() + 8 + record->suffix_bytes())) break;
    const uint32_t payload_bytes = record->payload_bytes.load(std::memory_order_acquire);
    racy_read(writer.payload(), record->payload(), std::min(writer.stride(), payload_bytes));
    // racy_read ends with an acquire fence, so the loads above come before this load.
    if (record->head.load_acquire() != seen) break;
    // A record that this transaction writes is not ordinary (R14).
    if (may_be_own && is_own(record, page->slices()[slot])) break;
    if (!fault::batches_register_nothing) status = txn_->register_read(&record->head, seen);
    if (status != Status::ok) break;
    const uint32_t key_bytes =
        writer.wants_keys() ? copy_key(record, page->slices()[slot], writer.key()) : 0;
    ScanRow& row = writer.row();
    row.key = {writer.key(), key_bytes};
    row.ref.record = &record->head;
    row.ref.payload_at = record->payload_at();
    row.ref.payload_bytes = static_cast<uint16_t>(payload_bytes);
    row.ref.place = 0;  // ref() completes it
    row.vid = seen;
    row.payload_bytes = payload_bytes;
    writer.add(key_bytes);
    last = record;
  }
  batch = writer;
  returned_ += static_cast<uint64_t>((at - current.position) * step);
  current.position = at;
  // A seek continues after the last visited record.
  if (last != nullptr) put_key(last, page->slices()[last->head.slot]);
  return status;
}

/// Does the same as take_run in a snapshot page, without versions and read set: such a page never
/// changes, and the registered pointer or the snapshot stands for all its records. All of them
/// exist, so only a next layer ends the run early.
Status MasterTreeCursor::take_cold_run(BatchWriter& batch) {
  DCHECK(may_take_run() && !top_->cold.is_null());
  Status status = txn_->snapshot() == nullptr ? txn_->check_volatile()
                                              : tree_.handle().check_snapshot(*txn_, false, 0);
  if (status != Status::ok || top_->left(forward_) == 0) return status;
  status = hold_page();
  if (status == Status::ok) copy_cold_run(batch);
  txn_->worker().leave_snapshots();
  // After a run, next() is asked for single records only.
  copied_bytes_ = kFirstCopiedBytes;
  return status;
}

/// REQUIRES: as for take_cold_run, and the page is held.
void MasterTreeCursor::copy_cold_run(BatchWriter& batch) {
  Frame& current = frame();
  BorderPage* const page = current.page;
  const int64_t step = forward_ ? 1 : -1;
  const int64_t count = std::min(count_inside(), static_cast<int64_t>(batch.left()));
  const size_t key_bytes_above = prefix().size() + 8;
  DCHECK(count >= 0 && count <= current.left(forward_));
  BatchWriter writer = batch;
  const TreeRecord* last = nullptr;
  uint64_t last_slice = 0;
  int64_t at = current.position;
  for (const int64_t end = at + step * count; at != end; at += step) {
    current.prefetch(at + step * kRecordsAhead);
    current.prefetch_next_cold();
    const uint32_t slot = current.slot_at(at);
    const TreeRecord* const record = page->record(slot);
    const Vid seen = record->head.load_acquire();
    if (seen.is_next_layer() || !writer.has_room(key_bytes_above + record->suffix_bytes())) break;
    last = record;
    last_slice = page->slices()[slot];
    const auto* const payload = reinterpret_cast<const std::byte*>(record) + record->payload_at();
    const uint32_t payload_bytes = record->payload_bytes.load(std::memory_order_relaxed);
    copy_bytes(writer.payload(), payload, std::min(writer.stride(), payload_bytes));
    const uint32_t key_bytes = writer.wants_keys() ? copy_key(record, last_slice, writer.key()) : 0;
    ScanRow& row = writer.row();
    row.key = {writer.key(), key_bytes};
    row.ref = RecordRef{};
    row.ref.payload_at = static_cast<uint16_t>(payload - reinterpret_cast<const std::byte*>(page));
    row.ref.payload_bytes = static_cast<uint16_t>(payload_bytes);
    row.ref.place = current.cold.word();
    row.vid = seen;
    row.payload_bytes = payload_bytes;
    writer.add(key_bytes);
  }
  batch = writer;
  returned_ += static_cast<uint64_t>((at - current.position) * step);
  current.position = at;
  // A seek continues after the last visited record.
  if (last != nullptr) put_key(last, last_slice);
}

/// Returns whether this transaction plans a write of the record.
bool MasterTreeCursor::is_own(TreeRecord* record, uint64_t slice) const {
  std::array<std::byte, kMaxTreeKeyBytes + 8> bytes;
  const Bytes key(bytes.data(), copy_key(record, slice, bytes.data()));
  return txn_->find_write(make_ref(txn_->worker(), record, key), key) != nullptr;
}

}  // namespace atolldb
