#include "engine/sequential/sequential.h"

#include <algorithm>
#include <utility>

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
  const Status usable = storage_.check_volatile(*txn_, 0);
  if (usable != Status::ok && txn_->snapshot() == nullptr) return usable;
  opened_ = true;
  if (usable != Status::ok) {
    return open_snapshot(txn_->snapshot()->root_of(storage_.id()));
  }
  const std::atomic<uint64_t>& word = storage_.control().root.snapshot_word;
  for (;;) {
    const SnapshotPointer snapshot(word.load(std::memory_order_acquire));
    reach(SyncPoint::opening_lists);
    const Status status = open_all(snapshot);
    if (status != Status::ok) return status;
    // An installer may meanwhile have dropped pages of a list whose records are only in a later
    // snapshot than `snapshot`. All lists must then be opened again. This load notices that. The
    // installer stores the later snapshot in this word before it stores the new head of the list
    // (release). And open_all has loaded that head (acquire) before this load.
    if (word.load(std::memory_order_acquire) == snapshot.word() || fault::scan_one_snapshot_word) {
      return merge_lists();
    }
  }
}

Status SequentialCursor::open_all(SnapshotPointer snapshot) {
  ahead_.clear();
  open_.clear();
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

/// Finds the runs of snapshot pages, and opens none. A newer root page links to the older ones.
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
    if (!runs->is_sound(root)) return Status::snapshot_unreadable;
    for (uint64_t i = runs->count; i-- > 0;) {
      const SequentialRun& run = runs->runs[i];
      if (run.last_epoch < first_epoch_ || run.first_epoch > last_epoch_) continue;
      ahead_.push_back(
          {SnapshotPointer(run.first_page), run.pages, run.first_epoch, ahead_.size()});
    }
    root = SnapshotPointer(runs->previous);
  }
  // Sorts in descending order of first epochs: the next run is the last element. Runs of one node
  // that begin at the same epoch stay in reverse order of their records (R69).
  std::ranges::sort(ahead_, [](const RunAhead& one, const RunAhead& other) {
    return one.first_epoch != other.first_epoch ? one.first_epoch > other.first_epoch
                                                : one.place < other.place;
  });
  return Status::ok;
}

/// Makes the heap of the lists. Lists come after all runs of their epoch.
Status SequentialCursor::merge_lists() {
  std::vector<ListPosition> lists = std::move(open_);
  open_.clear();
  for (ListPosition& list : lists) {
    bool ended = false;
    const Status status = settle(list, ended);
    if (status != Status::ok) return status;
    if (ended) continue;
    list.rank = ahead_.size() + open_.size();
    open_.push_back(list);
    std::ranges::push_heap(open_, comes_later);
  }
  return Status::ok;
}

/// Opens the runs that may have the next record. So only runs whose epochs overlap are open at a
/// time.
Status SequentialCursor::open_reached_runs() {
  DCHECK(!last_is_taken_);
  while (!ahead_.empty()) {
    const RunAhead run = ahead_.back();
    if (!open_.empty() && run.first_epoch > open_.front().epoch) break;
    ListPosition position;
    // The position lies before the first page; settle moves to that page.
    position.cold = SnapshotPointer(run.first_page.word() - 1);
    position.cold_pages = run.pages;
    position.rank = next_rank_++;
    Status status = run.first_epoch < first_epoch_ ? find_first_page(position) : Status::ok;
    bool ended = false;
    if (status == Status::ok) status = settle(position, ended);
    if (status != Status::ok) return status;
    ahead_.pop_back();
    if (ended) continue;
    open_.push_back(position);
    std::ranges::push_heap(open_, comes_later);
  }
  return Status::ok;
}

/// Moves the position of a run before the page that has the first record of the scan. The epochs of
/// a run ascend (R69), so a binary search finds this page.
Status SequentialCursor::find_first_page(ListPosition& position) {
  // Pages before number `begin` start with an earlier epoch than first_epoch_. Pages from number
  // `end` on do not.
  uint64_t begin = 0;
  uint64_t end = position.cold_pages;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    const SequentialPage* page = nullptr;
    const Status status = load_cold(SnapshotPointer(position.cold.word() + 1 + middle), page);
    const bool is_before =
        status == Status::ok &&
        Vid(reinterpret_cast<const SequentialRecord*>(page->data)->vid).epoch() < first_epoch_;
    txn_->worker().leave_snapshots();
    if (status != Status::ok) return status;
    (is_before ? begin : end) = is_before ? middle + 1 : middle;
  }
  const uint64_t skipped = begin == 0 ? 0 : begin - 1;
  DCHECK(skipped <= position.cold_pages);
  position.cold = SnapshotPointer(position.cold.word() + skipped);
  position.cold_pages -= skipped;
  return Status::ok;
}

Status SequentialCursor::open_list(const std::atomic<uint64_t>& word) {
  WorkerContext& worker = txn_->worker();
  const VolatilePointer pointer(word.load(std::memory_order_acquire));
  if (pointer.is_null()) return txn_->register_word(word, pointer.word());
  auto* list = reinterpret_cast<SequentialListHead*>(worker.resolve(pointer));
  // Waits while an append is in progress, so that the version word is even. The records that are
  // visible then belong to this value of the word.
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
  // Pages before `first` may have been dropped. But if the page at `first` has a larger number than
  // `first_number`, a page is missing (R17). The installer stores `first_number` before `first`, so
  // a scan loads them in the opposite order (acquire).
  if (page->number > list->first_number.load(std::memory_order_acquire) && !fault::ignore_list_gaps)
    return Status::read_conflict;
  ListPosition position;
  position.page = page;
  position.count = page->header.version().count();
  open_.push_back(position);  // merge_lists settles it
  return Status::ok;
}

/// Loads a snapshot page, which is valid until the worker leaves the round or loads the next page.
/// The caller leaves the round after it has read the page (R57).
Status SequentialCursor::load_cold(SnapshotPointer pointer, const SequentialPage*& page) {
  DCHECK(!pointer.is_null());
  const PageHeader* header = nullptr;
  const Status status = txn_->worker().snapshot_page(pointer, header);
  page = reinterpret_cast<const SequentialPage*>(header);
  return status;
}

/// Moves the position of a list to its next page.
Status SequentialCursor::next_page(ListPosition& position, bool& ended) {
  DCHECK(position.page != nullptr);
  DCHECK(position.index == position.count && !position.is_settled);
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
  if (position.page == nullptr) return settle_cold(position, ended);
  while (!position.is_settled) {
    while (position.index == position.count) {
      const Status status = next_page(position, ended);
      if (status != Status::ok || ended) return status;
    }
    const auto* record = reinterpret_cast<SequentialRecord*>(position.page->data + position.offset);
    position.epoch = Vid(record->vid).epoch();
    position.is_settled = true;
    if (position.epoch <= snapshot_epoch_) {
      // The record is also in the snapshot, so the list's copy is skipped.
      txn_->observe(Vid(record->vid));
      skip(position, *record);
    }
  }
  return Status::ok;
}

/// Does the same as `settle` in a run. `take_cold` settles a position whose page has more records.
Status SequentialCursor::settle_cold(ListPosition& position, bool& ended) {
  while (!position.is_settled) {
    DCHECK(position.index == position.count);
    ended = position.cold_pages == 0;
    if (ended) return Status::ok;
    --position.cold_pages;
    position.cold = SnapshotPointer(position.cold.word() + 1);
    position.index = 0;
    position.offset = 0;
    position.count = 0;
    const SequentialPage* page = nullptr;
    const Status status = load_cold(position.cold, page);
    if (status == Status::ok) {
      position.count = page->header.version().count();
      position.is_settled = position.count != 0;
      position.epoch = Vid(reinterpret_cast<const SequentialRecord*>(page->data)->vid).epoch();
    }
    txn_->worker().leave_snapshots();
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

void SequentialCursor::skip(ListPosition& position, const SequentialRecord& record) {
  DCHECK(position.is_settled && position.index < position.count);
  position.offset += SequentialRecord::bytes_for(static_cast<uint32_t>(record.payload_bytes));
  ++position.index;
  position.is_settled = false;
}

/// Settles the position whose record was taken, and returns it to the heap.
Status SequentialCursor::settle_last() {
  if (!last_is_taken_) return Status::ok;
  DCHECK(!open_.empty());
  bool ended = false;
  const Status status = settle(open_.back(), ended);
  if (status != Status::ok) return status;
  last_is_taken_ = false;
  if (ended) {
    open_.pop_back();
  } else {
    std::ranges::push_heap(open_, comes_later);
  }
  return Status::ok;
}

/// Makes the first record of the heap the current one, and moves its position past it.
Status SequentialCursor::take_first() {
  DCHECK(!open_.empty() && !last_is_taken_);
  std::ranges::pop_heap(open_, comes_later);
  last_is_taken_ = true;
  ListPosition& position = open_.back();
  epoch_ = position.epoch;
  if (position.page == nullptr) return take_cold(position);
  DCHECK(position.offset + sizeof(SequentialRecord) <= SequentialPage::kDataBytes);
  auto* record = reinterpret_cast<SequentialRecord*>(position.page->data + position.offset);
  payload_ = {record->payload(), record->payload_bytes};
  txn_->observe(Vid(record->vid));
  skip(position, *record);
  return Status::ok;
}

/// Copies the record from the cache. Settles the position as well if the page has a further record,
/// so that a record costs one request to the cache.
Status SequentialCursor::take_cold(ListPosition& position) {
  const SequentialPage* page = nullptr;
  const Status status = load_cold(position.cold, page);
  if (status == Status::ok) {
    const auto record_at = [&] {
      DCHECK(position.offset + sizeof(SequentialRecord) <= SequentialPage::kDataBytes);
      return reinterpret_cast<const SequentialRecord*>(page->data + position.offset);
    };
    const SequentialRecord& record = *record_at();
    const auto* bytes = reinterpret_cast<const std::byte*>(&record + 1);
    cold_payload_.assign(bytes, bytes + record.payload_bytes);
    payload_ = cold_payload_;
    skip(position, record);
    if (position.index < position.count) {
      position.epoch = Vid(record_at()->vid).epoch();
      position.is_settled = true;
    }
  }
  txn_->worker().leave_snapshots();
  return status;
}

Status SequentialCursor::next() {
  const Status status = move();
  if (status == Status::ok) storage_.count_operations(*txn_, 1);
  return status;
}

Status SequentialCursor::move() {
  Status status =
      txn_->snapshot() == nullptr ? txn_->check() : storage_.check_snapshot(*txn_, false, 0);
  if (status != Status::ok) return status;
  if (!opened_) status = open();
  if (status != Status::ok) return status;
  for (;;) {
    status = settle_last();
    if (status == Status::ok) status = open_reached_runs();
    if (status != Status::ok) return status;
    if (open_.empty() || open_.front().epoch > last_epoch_) break;
    status = take_first();
    if (status != Status::ok) return status;
    if (epoch_ >= first_epoch_) return Status::ok;
  }
  epoch_ = 0;
  payload_ = {};
  return txn_->own_append(storage_.id(), own_, payload_) ? Status::ok : Status::end_of_scan;
}

}  // namespace atolldb
