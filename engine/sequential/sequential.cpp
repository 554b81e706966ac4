#include "engine/sequential/sequential.h"

#include "engine/mutants.h"
#include "engine/seams.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

Status Sequential::append(Transaction& txn, std::span<const std::byte> payload) const {
  const Status status = storage_.check(txn);
  if (status != Status::ok) return status;
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
  const Status usable = storage_.check(*txn_);
  if (usable != Status::ok) return usable;
  opened_ = true;
  WorkerContext& worker = txn_->worker();
  const DualPointer& root_pointer = storage_.control().root;
  const VolatilePointer root = root_pointer.load_acquire();
  if (root.is_null()) return txn_->register_pointer(&root_pointer, root.word());
  auto* directory = reinterpret_cast<SequentialDirectory*>(worker.resolve(root));
  for (uint32_t node = 0; node < worker.view().node_count; ++node) {
    const std::atomic<uint64_t>& node_word = directory->entries[node];
    const VolatilePointer pointer(node_word.load(std::memory_order_acquire));
    if (pointer.is_null()) {
      const Status status = txn_->register_word(node_word, pointer.word());
      if (status != Status::ok) return status;
      continue;
    }
    auto* lists = reinterpret_cast<SequentialDirectory*>(worker.resolve(pointer));
    const uint32_t workers = worker.view().shared[node]->worker_count;
    for (uint32_t ordinal = 0; ordinal < workers; ++ordinal) {
      const Status status = open_list(lists->entries[ordinal]);
      if (status != Status::ok) return status;
    }
  }
  return Status::ok;
}

Status SequentialCursor::open_list(const std::atomic<uint64_t>& word) {
  WorkerContext& worker = txn_->worker();
  const VolatilePointer pointer(word.load(std::memory_order_acquire));
  if (pointer.is_null()) return txn_->register_word(word, pointer.word());
  auto* list = reinterpret_cast<SequentialListHead*>(worker.resolve(pointer));
  // An append under way is over in a moment; what is then visible belongs to the even value.
  uint64_t version = list->version.load(std::memory_order_acquire);
  for (uint32_t turns = 0; version % 2 == 1 && !mutant(Mutant::scan_odd_lists);) {
    reach(Seam::scanning_list);
    if (worker.cluster_failed()) return Status::cluster_failed;
    spin_or_yield(turns);
    version = list->version.load(std::memory_order_acquire);
  }
  const Status status = txn_->register_word(list->version, version);
  if (status != Status::ok) return status;
  const VolatilePointer first(list->first.load(std::memory_order_acquire));
  if (first.is_null()) return Status::ok;
  auto* page = reinterpret_cast<SequentialPage*>(worker.resolve(first));
  // Page numbers without a gap, from 0: nothing is missing (R17).
  if (page->number != 0 && !mutant(Mutant::ignore_list_gaps)) return Status::read_conflict;
  lists_.push_back({page, 0, 0, page->header.version().count()});
  return Status::ok;
}

/// Moves a position that has passed its page's records to the next page.
Status SequentialCursor::settle(ListPosition& position, bool& ended) {
  ended = false;
  while (position.index == position.count) {
    const VolatilePointer next(position.page->next.load(std::memory_order_acquire));
    if (next.is_null()) {
      ended = true;
      return Status::ok;
    }
    auto* page = reinterpret_cast<SequentialPage*>(txn_->worker().resolve(next));
    if (page->number != position.page->number + 1 && !mutant(Mutant::ignore_list_gaps)) {
      return Status::read_conflict;
    }
    position = {page, 0, 0, page->header.version().count()};
  }
  return Status::ok;
}

Status SequentialCursor::next() {
  Status status = txn_->check();
  if (status != Status::ok) return status;
  if (!opened_) status = open();
  if (status != Status::ok) return status;
  for (;;) {
    ListPosition* best = nullptr;
    uint64_t best_epoch = 0;
    for (size_t i = 0; i < lists_.size();) {
      bool ended = false;
      status = settle(lists_[i], ended);
      if (status != Status::ok) return status;
      if (ended) {
        lists_.erase(lists_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      const uint64_t epoch = Vid(record(lists_[i])->vid).epoch();
      if (best == nullptr || epoch < best_epoch) {
        best = &lists_[i];
        best_epoch = epoch;
      }
      ++i;
    }
    if (best == nullptr) break;
    SequentialRecord* current = record(*best);
    payload_ = {current->payload(), current->payload_bytes};
    epoch_ = best_epoch;
    best->offset += SequentialRecord::bytes_for(static_cast<uint32_t>(current->payload_bytes));
    ++best->index;
    txn_->observe(Vid(current->vid));
    if (epoch_ >= first_epoch_ && epoch_ <= last_epoch_) return Status::ok;
  }
  epoch_ = 0;
  return txn_->own_append(storage_.id(), own_, payload_) ? Status::ok : Status::end_of_scan;
}

}  // namespace atolldb
