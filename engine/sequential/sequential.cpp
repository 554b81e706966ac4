#include "engine/sequential/sequential.h"

#include <algorithm>

#include "engine/format/sequential_page.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

Status Sequential::append(Transaction& txn, std::span<const std::byte> payload) const {
  Status status = storage_.check_volatile(txn);
  if (status != Status::ok) [[unlikely]] {
    if (txn.snapshot() == nullptr) return status;
    status = storage_.check_snapshot(txn, true);
    if (status != Status::ok) return status;
  }
  if (payload.size() > kMaxPayloadBytes) return Status::payload_too_long;
  return txn.write_append(&storage_.control(), payload);
}

SequentialCursor::SequentialCursor(const Sequential& sequential, Transaction& txn,
                                   uint64_t first_epoch, uint64_t last_epoch)
    : storage_(sequential.handle()),
      txn_(&txn),
      first_epoch_(first_epoch),
      last_epoch_(last_epoch) {}

Status SequentialCursor::open() {
  const Status usable = storage_.check_volatile(*txn_);
  if (usable != Status::ok && txn_->snapshot() == nullptr) return usable;
  if (usable != Status::ok) {
    opened_ = true;
    return open_snapshot(txn_->snapshot()->root_of(storage_.id()));
  }
  opened_ = true;
  const std::atomic<uint64_t>& word = storage_.control().root.snapshot_word;
  for (;;) {
    const SnapshotPointer snapshot(word.load(std::memory_order_acquire));
    reach(SyncPoint::opening_lists);
    const Status status = open_all(snapshot);
    if (status != Status::ok) return status;
    // The installer stores this word (release) before it shortens lists. A list may lack pages that
    // were dropped onto a later snapshot. Then this load sees the later snapshot, because it comes
    // after the load of the list's head (acquire).
    if (word.load(std::memory_order_acquire) == snapshot.word() || fault::scan_one_snapshot_word) {
      return Status::ok;
    }
  }
}

Status SequentialCursor::open_all(SnapshotPointer snapshot) {
  lists_.clear();
  snapshot_epoch_ = 0;
  WorkerContext& worker = txn_->worker();
  const DualPointer& root_pointer = storage_.control().root;
  const VolatilePointer root = root_pointer.load_acquire();
  if (!snapshot.is_null()) {
    const Status status = open_snapshot(snapshot);
    if (status != Status::ok) return status;
  }
  if (root.is_null()) return txn_->register_pointer(&root_pointer, root.word());
  auto* directory = reinterpret_cast<SequentialDirectory*>(worker.resolve(root));
  DCHECK(directory->header.type == PageType::sequential && directory->header.level == 2);
  for (uint32_t node = 0; node < worker.view().node_count; ++node) {
    const std::atomic<uint64_t>& node_word = directory->entries[node];
    const VolatilePointer pointer(node_word.load(std::memory_order_acquire));
    if (pointer.is_null()) {
      const Status status = txn_->register_word(node_word, pointer.word());
      if (status != Status::ok) return status;
      continue;
    }
    auto* lists = reinterpret_cast<SequentialDirectory*>(worker.resolve(pointer));
    DCHECK(lists->header.type == PageType::sequential && lists->header.level == 1);
    const uint32_t workers = worker.view().shared[node]->worker_count;
    for (uint32_t ordinal = 0; ordinal < workers; ++ordinal) {
      const Status status = open_list(lists->entries[ordinal]);
      if (status != Status::ok) return status;
    }
  }
  return Status::ok;
}

/// Finds the runs of snapshot pages. A newer root page links to the older ones.
Status SequentialCursor::open_snapshot(SnapshotPointer root) {
  if (root.is_null()) return Status::ok;
  const Status status = find_runs(root);
  txn_->worker().leave_snapshots();
  return status;
}

Status SequentialCursor::find_runs(SnapshotPointer root) {
  for (bool is_newest = true; !root.is_null(); is_newest = false) {
    const PageHeader* page = nullptr;
    const Status status = txn_->worker().snapshot_page(root, page);
    if (status != Status::ok) return status;
    if (is_newest)
      snapshot_epoch_ = Vid(page->max_removed_vid.load(std::memory_order_relaxed)).epoch();
    const auto* runs = reinterpret_cast<const SequentialSnapshotRoot*>(page);
    for (uint64_t i = runs->count; i-- > 0;) {
      const SequentialRun& run = runs->runs[i];
      if (run.last_epoch < first_epoch_ || run.first_epoch > last_epoch_) continue;
      ListPosition position;
      // The position lies before the first page; settle moves to that page.
      position.cold = SnapshotPointer(run.first_page - 1);
      position.cold_pages = run.pages + 1;
      lists_.push_back(position);
    }
    root = SnapshotPointer(runs->previous);
  }
  std::reverse(lists_.begin(), lists_.end());
  return Status::ok;
}

Status SequentialCursor::open_list(const std::atomic<uint64_t>& word) {
  WorkerContext& worker = txn_->worker();
  const VolatilePointer pointer(word.load(std::memory_order_acquire));
  if (pointer.is_null()) return txn_->register_word(word, pointer.word());
  auto* list = reinterpret_cast<SequentialListHead*>(worker.resolve(pointer));
  // Waits while an append is in progress. The records that are then visible belong to the even
  // value.
  uint64_t version = list->version.load(std::memory_order_acquire);
  for (uint32_t turns = 0; version % 2 == 1 && !fault::scan_odd_lists;) {
    reach(SyncPoint::scanning_list);
    if (worker.cluster_failed()) return Status::cluster_failed;
    spin_or_yield(turns);
    version = list->version.load(std::memory_order_acquire);
  }
  DCHECK(version % 2 == 0);
  const Status status = txn_->register_word(list->version, version);
  if (status != Status::ok) return status;
  const VolatilePointer first(list->first.load(std::memory_order_acquire));
  if (first.is_null()) return Status::ok;
  auto* page = reinterpret_cast<SequentialPage*>(worker.resolve(first));
  // If the first page has a larger number than `first_number`, a page is missing (R17). Pages
  // before the first one may have been dropped. Acquire, after `first`: see SequentialListHead.
  if (page->number > list->first_number.load(std::memory_order_acquire) && !fault::ignore_list_gaps)
    return Status::read_conflict;
  ListPosition position;
  position.page = page;
  position.count = page->header.version().count();
  lists_.push_back(position);
  return Status::ok;
}

/// Loads the page of a position. A snapshot page is valid until the worker leaves the round or
/// loads the next page. The caller leaves the round after it has read the page (R57).
Status SequentialCursor::hold_page(const ListPosition& position, SequentialPage*& page) {
  DCHECK(position.page != nullptr || !position.cold.is_null());
  page = position.page;
  if (page != nullptr) return Status::ok;
  const PageHeader* header = nullptr;
  const Status status = txn_->worker().snapshot_page(position.cold, header);
  page = reinterpret_cast<SequentialPage*>(const_cast<PageHeader*>(header));
  return status;
}

Status SequentialCursor::next_cold_page(ListPosition& position, bool& ended) {
  DCHECK(position.cold_pages != 0);
  ended = --position.cold_pages == 0;
  if (ended) return Status::ok;
  position.cold = SnapshotPointer(position.cold.word() + 1);
  position.index = 0;
  position.offset = 0;
  SequentialPage* page = nullptr;
  const Status status = hold_page(position, page);
  position.count = status == Status::ok ? page->header.version().count() : 0;
  txn_->worker().leave_snapshots();
  return status;
}

Status SequentialCursor::next_page(ListPosition& position, bool& ended) {
  DCHECK(position.index == position.count && !position.is_settled);
  if (position.page == nullptr) return next_cold_page(position, ended);
  const VolatilePointer next(position.page->next.load(std::memory_order_acquire));
  ended = next.is_null();
  if (ended) return Status::ok;
  auto* page = reinterpret_cast<SequentialPage*>(txn_->worker().resolve(next));
  if (page->number != position.page->number + 1 && !fault::ignore_list_gaps) {
    return Status::read_conflict;
  }
  position.page = page;
  position.index = 0;
  position.offset = 0;
  position.count = page->header.version().count();
  return Status::ok;
}

/// Moves a position to its next record, if necessary on the next page.
Status SequentialCursor::settle(ListPosition& position, bool& ended) {
  ended = false;
  while (!position.is_settled) {
    while (position.index == position.count) {
      const Status status = next_page(position, ended);
      if (status != Status::ok || ended) return status;
    }
    SequentialPage* page = nullptr;
    const Status status = hold_page(position, page);
    if (status != Status::ok) {
      txn_->worker().leave_snapshots();
      return status;
    }
    const auto* record = reinterpret_cast<SequentialRecord*>(page->data + position.offset);
    position.epoch = Vid(record->vid).epoch();
    position.is_settled = true;
    if (position.page == nullptr) {
      txn_->worker().leave_snapshots();
    } else if (position.epoch <= snapshot_epoch_) {
      // The record is also in the snapshot, so the list's copy is skipped.
      txn_->observe(Vid(record->vid));
      skip(position, *record);
    }
  }
  return Status::ok;
}

void SequentialCursor::skip(ListPosition& position, const SequentialRecord& record) {
  DCHECK(position.is_settled && position.index < position.count);
  position.offset += SequentialRecord::bytes_for(static_cast<uint32_t>(record.payload_bytes));
  ++position.index;
  position.is_settled = false;
}

/// Makes the record at the position the current one, and moves the position past it.
Status SequentialCursor::take(ListPosition& position) {
  SequentialPage* page = nullptr;
  const Status status = hold_page(position, page);
  if (status != Status::ok) {
    txn_->worker().leave_snapshots();
    return status;
  }
  DCHECK(position.offset + sizeof(SequentialRecord) <= SequentialPage::kDataBytes);
  auto* record = reinterpret_cast<SequentialRecord*>(page->data + position.offset);
  payload_ = {record->payload(), record->payload_bytes};
  epoch_ = position.epoch;
  skip(position, *record);
  if (position.page == nullptr) {
    cold_payload_.assign(payload_.begin(), payload_.end());
    payload_ = cold_payload_;
    txn_->worker().leave_snapshots();
  } else {
    txn_->observe(Vid(record->vid));
  }
  return Status::ok;
}

Status SequentialCursor::next() {
  Status status =
      txn_->snapshot() == nullptr ? txn_->check() : storage_.check_snapshot(*txn_, false);
  if (status != Status::ok) return status;
  if (!opened_) status = open();
  if (status != Status::ok) return status;
  for (;;) {
    ListPosition* best = nullptr;
    for (size_t i = 0; i < lists_.size();) {
      bool ended = false;
      status = settle(lists_[i], ended);
      if (status != Status::ok) return status;
      if (ended) {
        lists_.erase(lists_.begin() + static_cast<std::ptrdiff_t>(i));
        // `best` stays valid, because it lies before the erased element.
        continue;
      }
      if (best == nullptr || lists_[i].epoch < best->epoch) best = &lists_[i];
      ++i;
    }
    if (best == nullptr) break;
    status = take(*best);
    if (status != Status::ok) return status;
    if (epoch_ >= first_epoch_ && epoch_ <= last_epoch_) return Status::ok;
  }
  epoch_ = 0;
  payload_ = {};
  return txn_->own_append(storage_.id(), own_, payload_) ? Status::ok : Status::end_of_scan;
}

}  // namespace atolldb
