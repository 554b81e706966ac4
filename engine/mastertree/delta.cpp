#include "engine/mastertree/delta.h"

#include <algorithm>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/snapshot_tree.h"
#include "engine/transaction/dual_pointer.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Only pointers of the first layer get a mark. A lower layer may vanish from the next snapshot,
/// because its records were deleted or its last one was raised. Its pointer could then lead to no
/// page of that snapshot.
bool may_have_mark(const StorageControl& storage, const DualPointer* pointer) {
  if (pointer == &storage.root) return true;
  const PageHeader* holder = page_of(pointer);
  return holder->type == PageType::mastertree_interior && holder->layer == 0;
}

/// Makes sure that the delta tree has a root page.
Status install_root(WorkerContext& worker, StorageControl& storage) {
  if (!storage.delta_root.load_acquire().is_null()) return Status::ok;
  if (!worker.reserve_pages(1)) return Status::volatile_pool_exhausted;
  const uint32_t record_bytes = TreeRecord::bytes_with(8, storage.payload_bytes);
  BorderPage* page = new_border(worker, {storage.id, true}, 0, SliceRange{},
                                BorderPage::capacity_for(record_bytes), 0);
  uint64_t word = 0;
  if (!install_page(storage.delta_root.volatile_word, word, page->self().word())) {
    worker.pages().give_back(&page->header);
  }
  return Status::ok;
}

/// Sets the delta mark of the pointer (R76). `missing` has the mark on return, unless another
/// thread has changed the pointer; then the caller searches again.
Status set_mark(Transaction& txn, StorageControl& storage, MissingPage& missing) {
  VolatilePointer& seen = missing.view.page;
  DCHECK(seen.is_null() && !seen.is_frozen() && !missing.view.snapshot.is_null());
  if (seen.has_delta()) return Status::ok;
  const Status status = install_root(txn.worker(), storage);
  if (status != Status::ok || fault::no_delta_mark) return status;
  const VolatilePointer marked = seen.with_delta();
  uint64_t word = seen.word();
  reach(SyncPoint::installing);
  if (!missing.pointer->volatile_word.compare_exchange_strong(
          word, marked.word(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    return Status::ok;
  }
  seen = marked;
  // The reads below the pointer have not looked in the delta tree. Until now the registered word
  // stood for them.
  return txn.depends_on(missing.pointer) ? Status::pointer_installed : Status::ok;
}

/// Returns where the last slice of the key begins.
size_t last_slice_at(Bytes key) { return key.empty() ? 0 : (key.size() - 1) / 8 * 8; }

/// Returns whether other keys may share the last slice of `key` and end within it. They differ from
/// it in the number of zero bytes at the end.
bool may_have_neighbours(Bytes key) {
  return key.size() != last_slice_at(key) + 8 || key.back() == std::byte{0};
}

/// Reads what the snapshot has of the keys that share the last slice of `key`.
Status read_neighbours(WorkerContext& worker, SnapshotPointer root, Bytes key, ColdRecord& cold) {
  cold.neighbour_count = 0;
  if (!may_have_neighbours(key)) return Status::ok;
  const size_t begin = last_slice_at(key);
  std::array<std::byte, kMaxTreeKeyBytes + 8> bytes{};
  std::copy(key.begin(), key.end(), bytes.begin());
  size_t shortest = key.size();
  while (shortest > begin && key[shortest - 1] == std::byte{0}) --shortest;
  if (begin != 0) shortest = std::max(shortest, begin + 1);
  for (size_t length = shortest; length <= begin + 8; ++length) {
    if (length == key.size() || length > kMaxTreeKeyBytes) continue;
    TreeRead request{};
    const Status status =
        read_snapshot_record(worker, root, LayerKey(Bytes(bytes).first(length)), request);
    if (status == Status::not_found) continue;
    if (status != Status::ok) return status;
    CHECK(cold.neighbour_count < cold.neighbours.size());
    cold.neighbours[cold.neighbour_count++] = {static_cast<uint16_t>(length),
                                               page_bytes_of(request.payload_bytes)};
  }
  return Status::ok;
}

/// Reads the record of the key in the snapshot.
Status read_cold(WorkerContext& worker, const MissingPage& missing, Bytes rest_key,
                 ColdRecord& cold) {
  const LayerKey rest(rest_key);
  TreeRead request{.count = MasterTree::kMaxPayloadBytes, .out = cold.payload.data()};
  const Status status = read_snapshot_record(worker, missing.view.snapshot, rest, request);
  DCHECK(status != Status::ok || request.payload_bytes <= cold.payload.size());
  DCHECK(!request.seen.is_deleted() && !request.seen.is_relocated());
  cold.pointer = missing.pointer;
  cold.word = missing.view.page;
  cold.is_read = true;
  cold.exists = status == Status::ok;
  cold.vid = request.seen;
  cold.payload_bytes = cold.exists ? request.payload_bytes : 0;
  cold.max_removed_vid = request.max_removed_vid;
  if (status != Status::ok && status != Status::not_found) return status;
  return read_neighbours(worker, missing.view.snapshot, rest_key, cold);
}

}  // namespace

bool writes_to_delta(const StorageControl& storage, const MissingPage& missing) {
  if (!missing || missing.view.snapshot.is_null()) return false;
  DCHECK(!missing.view.page.has_delta() || may_have_mark(storage, missing.pointer));
  // Relaxed: the word of the pointer decides, and the switch only affects what is set there.
  return missing.view.page.has_delta() ||
         (storage.uses_delta.load(std::memory_order_relaxed) != 0 &&
          may_have_mark(storage, missing.pointer));
}

Status register_absent_from_delta(Transaction& txn, const Location& location, Bytes key,
                                  Vid below) {
  if (location.page == nullptr) {
    DCHECK(txn.worker().cluster_failed() || fault::no_delta_mark);
    return Status::cluster_failed;
  }
  return fault::absence_from_delta_unregistered
             ? Status::ok
             : txn.register_absence(&location.page->header, location.version,
                                    key.subspan(location.key_at), below);
}

Status reserve_in_delta(Transaction& txn, StorageControl& storage, const Location& cold, Bytes key,
                        uint32_t payload_bytes, Absent absent, Location& location) {
  WorkerContext& worker = txn.worker();
  MissingPage missing = cold.missing;
  DCHECK(missing && !missing.view.snapshot.is_null() && cold.page == nullptr);
  location = {};
  Status status = set_mark(txn, storage, missing);
  const bool is_marked = missing.view.page.has_delta() || fault::no_delta_mark;
  if (status != Status::ok || !is_marked) return status;
  CHECK(!storage.delta_root.load_acquire().is_null());
  ColdRecord record;
  for (;;) {
    status = txn.check();
    if (status != Status::ok) return status;
    location = locate(worker, storage, key, delta_link(storage));
    if (worker.cluster_failed()) return Status::cluster_failed;
    const bool is_open =
        location.record != nullptr && location.record->head.load_acquire().is_open();
    // A planned write on an open record has the whole payload, so this transaction does not depend
    // on what the snapshot has.
    const bool is_blind = absent == Absent::is_added_blindly ||
                          (is_open && txn.own_write(storage.id, key) != nullptr);
    if (location.record != nullptr && (!is_open || is_blind || fault::leave_records_open) &&
        (absent == Absent::stays || is_ready(location.record, payload_bytes))) {
      return Status::ok;
    }
    CHECK(location.page != nullptr);
    if (record.pointer == nullptr && is_blind && !may_have_neighbours(key)) {
      record.pointer = missing.pointer;
      record.word = missing.view.page;
    }
    if (record.pointer == nullptr || (!record.is_read && !is_blind)) {
      DCHECK(cold.key_at == 0);  // marked pointers are in the first layer
      status = read_cold(worker, missing, key, record);
      if (status != Status::ok) return status;
      if (location.record == nullptr && !record.exists && absent == Absent::stays) {
        if (txn.has_lost_write(storage.id, key)) return txn.miss_own_write();
        status = txn.register_pointer(missing.pointer, missing.view.page.word());
        if (status == Status::ok) {
          status = register_absent_from_delta(txn, location, key, Vid());
        }
        return status == Status::ok ? Status::not_found : status;
      }
    }
    if (!worker.reserve_pages(kPagesPerRestructure)) return Status::volatile_pool_exhausted;
    Step step = Step::again;
    status = change_page(txn, key, payload_bytes, location, step, &record);
    if (status != Status::ok || step == Step::done) return status;
    if (record.pointer != nullptr && !record.is_current()) {
      location = {};
      return Status::ok;
    }
  }
}

}  // namespace atolldb
