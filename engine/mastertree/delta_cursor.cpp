// Scans that merge the records of the delta tree into those of the tree (R79).
#include "engine/hooks/mutants.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/delta.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {

namespace {

void set_key(ScannedRecord& record, Bytes key) {
  copy_bytes(record.key_bytes.data(), key.data(), key.size());
  record.key_length = static_cast<uint32_t>(key.size());
}

}  // namespace

/// Opens the cursor over the delta tree. Allocates, because few scans need it, and those read from
/// the snapshot cache or the device anyway.
void MasterTreeCursor::begin_delta_merge() {
  DCHECK(merge_ == nullptr && !is_over_delta_ && txn_->snapshot() == nullptr);
  if (fault::scans_skip_delta) return;
  merge_ = std::make_unique<DeltaMerge>();
  merge_->delta = std::make_unique<MasterTreeCursor>(tree_, *txn_, range_, forward_);
  merge_->delta->is_over_delta_ = true;
  merge_->plan_changes = txn_->plan_changes();
  // The last visited key may lie before the start of the scan, in the same page.
  if (visited_ && !before_start(key())) {
    set_key(merge_->returned, key());
    merge_->has_returned = true;
  } else if (has_resume_) {
    set_key(merge_->returned, {resume_.data(), resume_bytes_});
    merge_->has_returned = true;
  }
  merge_->delta->place_after(*merge_);
}

/// Makes the next seek start after the last returned record, or at the start of the range.
void MasterTreeCursor::place_after(const DeltaMerge& merge) {
  DCHECK(merge.returned.key_length <= key_.size());
  ended_ = false;
  visited_ = merge.has_returned;
  has_resume_ = false;
  if (!merge.has_returned) return;
  const Bytes key = merge.returned.key();
  copy_bytes(key_.data(), key.data(), key.size());
  key_bytes_ = merge.returned.key_length;
}

/// Continues the first call of `next` that met a delta mark. `found`: result of its walk.
Status MasterTreeCursor::begin_merged_scan(Status found) {
  if (found != Status::ok && found != Status::end_of_scan) return found;
  DeltaMerge& merge = *merge_;
  DCHECK(!merge.has_main && !merge.has_delta && !is_over_delta_);
  merge.main_has_ended = found == Status::end_of_scan;
  if (found == Status::ok) keep_main();
  return next_in_both();
}

/// Both cursors start again, because this transaction has reserved records, perhaps ahead of them
/// (R14).
Status MasterTreeCursor::restart_merge() {
  DeltaMerge& merge = *merge_;
  merge.has_main = merge.main_has_ended = merge.knows_main = false;
  merge.has_delta = merge.delta_has_ended = false;
  merge.plan_changes = txn_->plan_changes();
  merge.delta->place_after(merge);
  merge.delta->reservations_ = ~uint64_t{0};  // it seeks, too
  place_after(merge);
  const Status status = seek();
  return status == Status::ok ? status : end_without_record(status);
}

/// Finds the next record of the tree itself.
Status MasterTreeCursor::read_main() {
  DeltaMerge& merge = *merge_;
  if (merge.has_main || merge.main_has_ended) return Status::ok;
  DCHECK(!merge.knows_main || merge.main.key_length <= key_.size());
  if (merge.knows_main) {
    // If the walk seeks, it continues after its own last record, which may have been hidden.
    copy_bytes(key_.data(), merge.main.key().data(), merge.main.key_length);
    key_bytes_ = merge.main.key_length;
    visited_ = true;
  }
  const Status status = ended_ ? end_ : walk();
  if (status == Status::end_of_scan) {
    merge.main_has_ended = true;
    return Status::ok;
  }
  if (status == Status::ok) keep_main();
  return status;
}

/// Keeps the record that the walk has found until it is returned.
void MasterTreeCursor::keep_main() {
  DeltaMerge& merge = *merge_;
  merge.has_main = merge.knows_main = true;
  set_key(merge.main, key());
  merge.main.payload_bytes = payload_bytes_;
  merge.main.ref = ref();
  merge.main.seen = seen_;
}

Status MasterTreeCursor::next_in_both() {
  DeltaMerge& merge = *merge_;
  if (ended_ && end_ != Status::end_of_scan) return end_;
  // The records read ahead show the writes that were planned by then (R14).
  if (reservations_ != txn_->reservations() || merge.plan_changes != txn_->plan_changes()) {
    const Status status = restart_merge();
    if (status != Status::ok) return status;
  }
  for (;;) {
    Status status = read_main();
    if (status != Status::ok) return status;
    MasterTreeCursor& delta = *merge.delta;
    if (!merge.has_delta && !merge.delta_has_ended) {
      status = delta.next();
      merge.has_delta = status == Status::ok;
      merge.delta_has_ended = status == Status::end_of_scan;
      if (status != Status::ok && status != Status::end_of_scan) return end_without_record(status);
    }
    if (!merge.has_main && !merge.has_delta) return end_without_record(Status::end_of_scan);
    int order = merge.has_delta ? 1 : -1;  // negative: the record of the tree comes first
    if (merge.has_main && merge.has_delta) {
      const int ascending = compare_keys(merge.main.key(), delta.key());
      order = forward_ ? ascending : -ascending;
    }
    if (order < 0) {
      merge.has_main = false;
      // A record of this key was removed from the delta tree, or its page was dropped (R14).
      const bool is_cold = merge.main.ref.record == nullptr;
      if (is_cold && txn_->has_lost_write(tree_.handle().id(), merge.main.key())) {
        return end_without_record(txn_->miss_own_write());
      }
      set_key(merge.returned, merge.main.key());
      ref_ = merge.main.ref;
      payload_bytes_ = merge.main.payload_bytes;
      seen_ = merge.main.seen;
    } else {
      // The record of the delta tree replaces that of the snapshot.
      if (order == 0) merge.has_main = false;
      merge.has_delta = false;
      if (delta.is_hidden_) continue;
      set_key(merge.returned, delta.key());
      ref_ = delta.ref();
      payload_bytes_ = delta.payload_bytes();
      // An own write does not change the version of the record (R82).
      const Vid below = order == 0 ? merge.main.seen : Vid();
      // A commit may have added to the record, and this transaction overwrites the sum (R83).
      seen_ = !delta.vid().is_open() ? delta.vid()
              : delta.vid().version() > below.version() && has_pending_add(delta.vid())
                  ? Vid(delta.vid().version())
                  : below;
    }
    DCHECK(order < 0 || ref_.record != nullptr);  // a record of the delta tree is volatile
    ref_is_complete_ = true;
    merge.has_returned = true;
    copy_bytes(key_.data(), merge.returned.key().data(), merge.returned.key_length);
    key_bytes_ = merge.returned.key_length;
    visited_ = true;
    return Status::ok;
  }
}

/// Closes a record to which a commit has added, because the scan needs the sum (R83). Leaves the
/// last visited key as it is, because the page of the record may be replaced. `is_closed`: false if
/// the scan does not need the record, or returns an own write instead.
Status MasterTreeCursor::close_pending(TreeRecord* record, uint64_t slice, bool& is_closed) {
  DCHECK(is_over_delta_ && record != nullptr && txn_->snapshot() == nullptr);
  if (fault::scans_pass_pending_adds) return Status::ok;
  ScannedRecord pending;
  const auto visited_key = key_;
  const uint32_t visited_bytes = key_bytes_;
  put_key(record, slice);
  set_key(pending, key());
  key_ = visited_key;
  key_bytes_ = visited_bytes;
  const Bytes key = pending.key();
  if (may_be_outside(slice) && (before_start(key) || past_far_bound(key))) return Status::ok;
  StorageControl& storage = tree_.storage();
  if (txn_->own_write(storage.id, key) != nullptr) return Status::ok;
  const Location cold = locate(txn_->worker(), storage, key);
  if (txn_->worker().cluster_failed()) return Status::cluster_failed;
  // The mark of the pointer stays while there are records (R76). So they were drained meanwhile.
  if (cold.record != nullptr || !cold.missing.view.page.has_delta()) return Status::read_conflict;
  Location location;
  const Status status = reserve_in_delta(*txn_, storage, cold, key, 0, Absent::stays, location);
  is_closed = true;
  return status == Status::not_found ? Status::ok : status;
}

/// The registered page word stands for a stable tombstone (R12).
Status MasterTreeCursor::visit_delta_tombstone(TreeRecord* record, uint64_t slice, bool& found) {
  const Vid vid = record->head.load_acquire();
  if (!vid.is_stable_tombstone()) return Status::ok;  // has changed: the cursor visits it again
  advance();
  put_key(record, slice);
  if (!passes_bounds(slice)) return Status::ok;
  visited_ = true;
  if (txn_->writes_blindly() &&
      txn_->find_write(make_ref(txn_->worker(), record, key()), key()) != nullptr) {
    return txn_->miss_own_write();
  }
  txn_->observe(vid);
  ref_ = RecordRef{};
  ref_is_complete_ = true;
  seen_ = vid;
  payload_bytes_ = 0;
  is_hidden_ = true;
  found = true;
  return Status::ok;
}

}  // namespace atolldb
