// The part of a scan that reads snapshot pages: opens them, and copies their records in turns. A
// turn is one round of the snapshot cache. To enter and to leave a round takes longer than to copy
// a record, so turns of single records would cost more than the verification of volatile records.
#include <algorithm>

#include "engine/hooks/mutants.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/prefetch.h"
#include "shared/base/check.h"

namespace atolldb {

/// `link`: as in ScanAhead.
Status MasterTreeCursor::open_cold_page(SnapshotPointer root, uint64_t slice,
                                        const DualPointer* link) {
  SnapshotBorder border;
  const Status status = find_snapshot_border(txn_->worker(), root, slice, border, scan_ahead(link));
  if (status != Status::ok) return end_at_unreadable(status);
  take_cold_page(border, slice);
  txn_->worker().leave_snapshots();
  return Status::ok;
}

/// Continues a forward scan on the next page of the same parent. Registers nothing: all pages of
/// the parent lie below the registered pointer, or in the snapshot that the transaction reads.
Status MasterTreeCursor::open_next_cold_page(uint64_t fence) {
  SnapshotBorder border;
  const Status status =
      next_snapshot_border(txn_->worker(), frame().place, scan_ahead(nullptr), border);
  if (status != Status::ok) return end_at_unreadable(status);
  if (border.page == nullptr) {
    txn_->worker().leave_snapshots();
    return open_page(fence);
  }
  take_cold_page(border, fence);
  txn_->worker().leave_snapshots();
  return Status::ok;
}

/// Ends the scan because a page of the layer cannot be read. The scan can neither read that page
/// nor skip it.
Status MasterTreeCursor::end_at_unreadable(Status status) {
  txn_->worker().leave_snapshots();
  ended_ = true;
  end_ = status;
  return status;
}

void MasterTreeCursor::take_cold_page(const SnapshotBorder& border, uint64_t slice) {
  take_page(border.page, border.pointer, border.page->header.version());
  Frame& frame = this->frame();
  frame.place = border.place;
  frame.round = txn_->worker().snapshot_round();
  frame.expect_next_cold(border.next);
  order_slots(slice);
  // The worker is in a round now, so the next call of visit_cold need not enter one.
  if (frame.ordered != 0) copy_records();
}

/// Enters the cache's round, and gets the page again if that round is a new one (R39).
Status MasterTreeCursor::hold_page() {
  Frame& frame = this->frame();
  DCHECK(!frame.cold.is_null());
  WorkerContext& worker = txn_->worker();
  if (frame.round == worker.enter_snapshots() || fault::keep_scanned_pages) [[likely]]
    return Status::ok;
  const PageHeader* page = nullptr;
  const Status status = worker.snapshot_page(frame.cold, page);
  if (status != Status::ok) return status;
  frame.round = worker.snapshot_round();
  frame.page = border_page(tree_page(const_cast<PageHeader*>(page)));
  return Status::ok;
}

/// Copies the records that the scan visits next. REQUIRES: the page is held, and has a next record.
void MasterTreeCursor::copy_records() {
  const Frame& current = frame();
  DCHECK(!current.cold.is_null() && current.is_within(current.position));
  BorderPage& page = *current.page;
  const uint32_t slot = current.slot_at(current.position);
  const uint32_t record_bytes = page.record(slot)->bytes();
  const bool has_payloads = reads_payloads_ || record_bytes <= kShortRecordBytes;
  const auto left = static_cast<uint32_t>(current.left(forward_));
  uint32_t count = 1;
  if (has_payloads && current.ascending) {
    count = std::clamp(copied_bytes_ / record_bytes, 1u, left);
  }
  const uint32_t first = forward_ ? slot : slot + 1 - count;
  DCHECK(first + count <= current.version.count() && count <= left);
  copied_.copy(page, current.cold, first, count, has_payloads);
  // Many scans end after a few records. The others soon copy a page at once.
  copied_bytes_ = std::min<uint32_t>(2 * copied_bytes_, kPageBytes);
  if (count == 1) return;
  // Prefetches what the next turn copies.
  const uint32_t more = std::min(2 * count, left - count);
  if (more == 0) return;
  const auto* const start = reinterpret_cast<const std::byte*>(&page);
  const uint16_t* const offsets = page.offsets();
  if (forward_) {
    prefetch_lines(start + offsets[first + count + more - 1], start + offsets[first + count - 1]);
  } else {
    prefetch_lines(start + offsets[first - 1], start + offsets[first - more] + record_bytes);
  }
}

}  // namespace atolldb
