// Cursor of transactions that read a snapshot (R18). All pages on its route belong to the snapshot.
#include <algorithm>

#include "engine/hooks/mutants.h"
#include "engine/mastertree/cursor.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {

Status MasterTreeCursor::open_snapshot() {
  const SnapshotPointer root = txn_->snapshot()->root_of(tree_.handle().id());
  ended_ = root.is_null();
  Bytes bound;
  return ended_ ? Status::ok : open_layer({}, root, start_bound(bound));
}

/// Starts to merge own writes into the scan, at the transaction's first planned write. Most scans
/// of a snapshot have no own writes, and allocate nothing.
void MasterTreeCursor::begin_merge() {
  DCHECK(txn_->snapshot() != nullptr && scan_ == nullptr);
  scan_ = std::make_unique<SnapshotScan>();
  scan_->is_forward = forward_;
  // If the first write came during the scan, the merge continues after the last visited record.
  scan_->has_returned = visited_;
  if (visited_) scan_->returned.assign(key().begin(), key().end());
}

/// Reads the snapshot's next record, if it is not known yet.
Status MasterTreeCursor::read_ahead() {
  SnapshotScan& scan = *scan_;
  if (scan.has_ahead || scan.is_at_end) return Status::ok;
  const Status status = ended_ ? end_ : walk();
  scan.is_at_end = status == Status::end_of_scan;
  if (scan.is_at_end) return Status::ok;
  if (status != Status::ok) return status;
  scan.has_ahead = true;
  copy_bytes(scan.ahead.key_bytes.data(), key_.data(), key_bytes_);
  scan.ahead.key_length = key_bytes_;
  scan.ahead.payload_bytes = payload_bytes_;
  scan.ahead.ref = ref_;
  scan.ahead.seen = seen_;
  return Status::ok;
}

/// Adds own writes to the merge: those that the transaction has planned since the last call, and
/// whose keys come after the last returned record.
void MasterTreeCursor::find_own_writes() {
  SnapshotScan& scan = *scan_;
  const auto planned = txn_->planned_writes();
  DCHECK(scan.planned <= planned.size() && scan.own_at <= scan.own.size());
  if (fault::hide_own_writes) return;
  const auto key_of = [&](uint32_t i) { return txn_->log_of(planned[i]).key_span(); };
  for (; scan.planned < planned.size(); ++scan.planned) {
    if (txn_->log_of(planned[scan.planned]).storage_id != tree_.handle().id()) continue;
    const Bytes key = key_of(scan.planned);
    const bool is_after = !scan.has_returned || scan.order(scan.returned, key) < 0;
    if (!is_after || before_start(key) || past_far_bound(key)) continue;
    const auto next = scan.own.begin() + static_cast<std::ptrdiff_t>(scan.own_at);
    const auto place = std::upper_bound(next, scan.own.end(), key, [&](Bytes left, uint32_t right) {
      return scan.order(left, key_of(right)) < 0;
    });
    scan.own.insert(place, scan.planned);
  }
}

/// Makes a record the current one. `get` reads its payload later.
void MasterTreeCursor::take_record(Bytes key, uint32_t payload_bytes, const RecordRef& ref,
                                   Vid seen) {
  DCHECK(key.size() <= key_.size() && scan_ != nullptr);
  copy_bytes(key_.data(), key.data(), key.size());
  key_bytes_ = static_cast<uint32_t>(key.size());
  payload_bytes_ = payload_bytes;
  ref_ = ref;
  ref_is_complete_ = true;
  seen_ = seen;
  scan_->has_record = true;
  scan_->has_returned = true;
  scan_->returned.assign(key.begin(), key.end());
}

Status MasterTreeCursor::next_in_snapshot() {
  Status status = tree_.handle().check_snapshot(*txn_, false, 0);
  if (status != Status::ok) return status;
  if (ended_ && scan_ == nullptr) return end_;  // the scan has ended
  if (depth_ == 0 && !ended_) status = open_snapshot();
  if (status != Status::ok) return status;
  if (txn_->plans_no_write()) return ended_ ? end_ : walk();
  if (scan_ == nullptr) begin_merge();
  for (;;) {
    status = read_ahead();
    if (status != Status::ok) return status;
    find_own_writes();
    SnapshotScan& scan = *scan_;
    const bool has_own = scan.own_at < scan.own.size();
    if (!has_own && !scan.has_ahead) return end_without_record(Status::end_of_scan);
    const LogRecord* own =
        has_own ? &txn_->log_of(txn_->planned_writes()[scan.own[scan.own_at]]) : nullptr;
    const ScannedRecord& ahead = scan.ahead;
    const int order = !has_own          ? 1
                      : !scan.has_ahead ? -1
                                        : scan.order(own->key_span(), ahead.key());
    if (order >= 0) scan.has_ahead = false;
    if (order > 0) {
      take_record(ahead.key(), ahead.payload_bytes, ahead.ref, ahead.seen);
      return Status::ok;
    }
    // An own write replaces the snapshot's record of the same key.
    ++scan.own_at;
    if (own->type == LogType::erase) continue;
    take_record(own->key_span(), own->payload_bytes, {}, order == 0 ? ahead.seen : Vid());
    return Status::ok;
  }
}

Status MasterTreeCursor::get_in_snapshot(void* out, uint32_t capacity) {
  // If the current record is an own write that the snapshot lacks, `ref_` is empty.
  const bool has_record = scan_ == nullptr ? !ref_.snapshot().is_null() : scan_->has_record;
  if (!has_record) return Status::invalid_argument;
  const WriteEntry* own = txn_->own_write(tree_.handle().id(), key());
  if (own == nullptr) return get_cold(out, capacity);
  const LogRecord& log = txn_->log_of(*own);
  if (log.type == LogType::erase) return Status::not_found;
  payload_bytes_ = log.payload_bytes;
  copy_bytes(out, log.payload(), std::min<uint32_t>(capacity, log.payload_bytes));
  return Status::ok;
}

}  // namespace atolldb
