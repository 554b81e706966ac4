#include "engine/mastertree/reserve.h"

#include <algorithm>
#include <cstring>

#include "engine/mastertree/build.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/restructure.h"
#include "engine/mutants.h"
#include "engine/seams.h"
#include "engine/snapshot/copy_up.h"

namespace atolldb {

namespace {

static_assert(kPagesPerRestructure >= 1);  // what a layer takes: its root

/// R10: ordinal 0 is never a commit.
Vid reserved_vid(const WorkerContext& worker) {
  const uint64_t epoch = worker.current_epoch();
  return mutant(Mutant::reserved_as_commit) ? Vid::make(epoch, 1, Vid::kDeleted | Vid::kReviving)
                                            : Vid::reserved(epoch);
}

/// R7 for one record: another key with the same slice and a different suffix has come. The record
/// goes into a layer of its own; its slot becomes the pointer to that layer. The page is locked.
Status add_layer(Transaction& txn, BorderPage* page, TreeRecord* record) {
  WorkerContext& worker = txn.worker();
  ScopedLock lock;
  if (!mutant(Mutant::move_without_record_locks) &&
      !lock.lock(worker, record->head.lock, kFirstRecordBlock, worker.name_of(record))) {
    return Status::cluster_failed;
  }
  const Vid vid(record->head.vid.load(std::memory_order_relaxed));
  const Bytes suffix{record->suffix(), record->suffix_bytes()};
  const LayerKey key(suffix);
  const uint32_t capacity = TreeRecord::capacity_for(key.remainder, record->capacity);
  const uint32_t bytes = TreeRecord::bytes_for(key.remainder, capacity);
  // What the page left out may have been keys that come into the layer from now on (R43).
  const uint64_t floor = std::max(floor_of(*page), vid.version());
  BorderPage* root =
      new_border(worker, page->header.storage_id, static_cast<uint8_t>(page->header.layer + 1),
                 SliceRange{}, BorderPage::capacity_for(bytes), floor);
  TreeRecord* copy =
      write_slot(root, 0, key.slice, key.remainder, key.suffix().data(), capacity, vid);
  const uint16_t payload_bytes = record->payload_bytes.load(std::memory_order_relaxed);
  copy->payload_bytes.store(payload_bytes, std::memory_order_relaxed);
  std::memcpy(copy->payload(), record->payload(), payload_bytes);
  const PageVersion layer = PageVersion::make(0, 1, PageVersion::kAscending);
  root->header.set_version(layer);

  // Readers of the record wait from here on. The page word changes (R6) before the layer can be
  // found: a scanner either has the old word, and fails if it verifies from now on, or has the new
  // one, and then sees being_written or next_layer.
  record->head.vid.store(vid.with(Vid::kBeingWritten).word(), std::memory_order_relaxed);
  DualPointer* pointer = record->next_layer();
  // R44: what the record's payload was is no snapshot page.
  if (!mutant(Mutant::layer_keeps_snapshot_word)) {
    pointer->snapshot_word.store(0, std::memory_order_release);
  }
  pointer->volatile_word.store(root->self().word(), std::memory_order_release);
  const PageVersion before = page->header.version();
  const PageVersion after =
      mutant(Mutant::no_version_bump_on_layer) ? before : before.with_change();
  page->header.set_version(after);
  record->head.vid.store(vid.with(Vid::kNextLayer).word(), std::memory_order_release);
  worker.metrics().next_layers.add();
  // What was absent from the page may now come into the layer: its root is a successor too (R13).
  const PageVersionEntry successors[] = {{&page->header, after}, {&root->header, layer}};
  const size_t count = mutant(Mutant::forget_layer_root) ? 1 : 2;
  return txn.page_replaced(&page->header, before, std::span(successors).first(count), {});
}

/// R6: one release store makes the new slots visible and the page different. The page is locked.
Status publish_inserts(Transaction& txn, BorderPage* page, PageVersion before, PageVersion after) {
  page->header.set_version(after);
  const auto node = static_cast<uint16_t>(txn.worker().node());
  if (page->header.last_modifier.load(std::memory_order_relaxed) != node) {
    page->header.last_modifier.store(node, std::memory_order_relaxed);
  }
  txn.count_reservation();
  return txn.page_changed(&page->header, before, after);
}

/// R13: what the page word said of this key until now, that it is absent, is from here on said by
/// the record: others may bring it to life without changing the page. Before the page is unlocked.
Status cover_absence(Transaction& txn, RecordHead* record, Vid absent) {
  return mutant(Mutant::uncovered_reservation) ? Status::ok : txn.register_read(record, absent);
}

/// The page is locked and has room.
Status append_slot(Transaction& txn, BorderPage* page, const LayerKey& key, uint32_t capacity,
                   Location& location) {
  WorkerContext& worker = txn.worker();
  const PageVersion before = page->header.version();
  const bool ascending = extends_order(page, before, key.slice, key.remainder);
  const Vid reserved = reserved_vid(worker);
  TreeRecord* record = write_slot(page, before.count(), key.slice, key.remainder,
                                  key.suffix().data(), capacity, reserved);
  const PageVersion after = before.with_insert(ascending);
  location.page = page;
  location.record = record;
  location.conflict = nullptr;
  location.version = after;
  const Status status = publish_inserts(txn, page, before, after);
  return status == Status::ok ? cover_absence(txn, &record->head, reserved) : status;
}

/// R12: scans rely on the page word for the absence of a settled dead record, so the word changes
/// before a commit may bring it back. From now on readers remember the record itself: whoever has
/// the new word sees the flag, which is stored first. The page is locked.
Status announce_revival(Transaction& txn, BorderPage* page, TreeRecord* record) {
  WorkerContext& worker = txn.worker();
  ScopedLock lock;
  if (!lock.lock(worker, record->head.lock, kFirstRecordBlock, worker.name_of(record))) {
    return Status::cluster_failed;
  }
  const Vid dead(record->head.vid.load(std::memory_order_relaxed));
  if (!dead.is_settled_dead()) return Status::ok;
  const Vid reviving = dead.with(Vid::kReviving);
  record->head.vid.store(reviving.word(), std::memory_order_release);
  txn.record_changed(&record->head, dead, reviving);
  const PageVersion before = page->header.version();
  const PageVersion after = mutant(Mutant::revive_unannounced) ? before : before.with_change();
  page->header.set_version(after);
  // An own cursor on this page has passed, or remembers as dead, what is about to be inserted
  // (R14).
  txn.count_reservation();
  const Status status = txn.page_changed(&page->header, before, after);
  return status == Status::ok ? cover_absence(txn, &record->head, reviving) : status;
}

/// Whether an insert may write to the record as it is.
bool is_ready(const TreeRecord* record, uint32_t payload_bytes) {
  return record->capacity >= payload_bytes && !record->head.load_acquire().is_settled_dead();
}

enum class Step : uint8_t { done, again };

/// One change under the page lock, towards a record with room. Locks nothing else on return.
Status change_page(Transaction& txn, Bytes key, uint32_t payload_bytes, Location& location,
                   Step& step) {
  WorkerContext& worker = txn.worker();
  BorderPage* page = location.page;
  const LayerKey rest(key.subspan(location.key_at));
  step = Step::again;
  reach(Seam::locking_page);
  ScopedLock lock;
  if (!lock.lock_page(worker, page, kPageBlock)) return Status::cluster_failed;
  const PageVersion version = page->header.version();
  if (version.is_moved() && !mutant(Mutant::change_moved_pages)) return Status::ok;
  SlotView slot{Match::none, 0, nullptr};
  if (version.word() != location.version.word() || location.conflict != nullptr ||
      location.record != nullptr) {
    slot = find_slot(worker, page, version, rest);
  }
  const uint32_t capacity = TreeRecord::capacity_for(rest.remainder, payload_bytes);
  RestructureRequest request;
  switch (slot.match) {
    case Match::next_layer:
      return Status::ok;
    case Match::conflict:
      return add_layer(txn, page, slot.record);
    case Match::record:
      if (slot.record->capacity >= payload_bytes) return announce_revival(txn, page, slot.record);
      request.grow = slot.record;
      request.grow_capacity = capacity;
      return restructure(worker, &txn, page, request);
    case Match::none:
      break;
  }
  const uint32_t record_bytes = TreeRecord::bytes_for(rest.remainder, capacity);
  if (page->has_room(version.count(), record_bytes)) {
    step = Step::done;
    return append_slot(txn, page, rest, capacity, location);
  }
  request.new_slice = rest.slice;
  request.new_record_bytes = record_bytes;
  return restructure(worker, &txn, page, request);
}

}  // namespace

Status install_missing(Transaction& txn, StorageControl& storage, const MissingPage& missing,
                       uint32_t payload_bytes) {
  if (!missing.view.snapshot.is_null()) return copy_up(txn, *missing.pointer, missing.view);
  // Below the root every null word has a snapshot page (R44).
  CHECK(missing.pointer == &storage.root);
  if (txn.depends_on(&storage.root)) return Status::pointer_installed;
  WorkerContext& worker = txn.worker();
  if (!worker.reserve_pages(1)) return Status::volatile_pool_exhausted;
  const uint32_t record_bytes =
      TreeRecord::bytes_for(8, std::max(align8(payload_bytes), align8(storage.payload_bytes)));
  BorderPage* page =
      new_border(worker, storage.id, 0, SliceRange{}, BorderPage::capacity_for(record_bytes),
                 storage.root_floor.load(std::memory_order_relaxed));
  reach(Seam::installing);
  uint64_t expected = mutant(Mutant::install_by_store)
                          ? storage.root.volatile_word.load(std::memory_order_acquire)
                          : missing.view.page.word();
  if (!storage.root.volatile_word.compare_exchange_strong(
          expected, page->self().word(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    worker.pages().give_back(&page->header);
  }
  return Status::ok;
}

Status reserve_run(Transaction& txn, StorageControl& storage, std::span<const Bytes> keys,
                   std::span<const Bytes> payloads, std::span<TreeRecord*> records, uint32_t& done,
                   Vid& reserved) {
  done = 0;
  Status status = txn.check();
  if (status != Status::ok) return status;
  WorkerContext& worker = txn.worker();
  const uint64_t first = slice_of(keys[0]);
  const BorderView view = find_border(worker, storage, root_link(storage), first);
  if (view.page == nullptr) return Status::ok;
  BorderPage* page = view.page;
  reach(Seam::locking_page);
  ScopedLock lock;
  if (!lock.lock_page(worker, page, kPageBlock)) return Status::cluster_failed;
  const PageVersion before = page->header.version();
  const uint32_t count = before.count();
  if (before.is_moved() && !mutant(Mutant::change_moved_pages)) return Status::ok;
  if (!before.is_ascending()) return Status::ok;
  uint64_t last = count == 0 ? 0 : page->slices()[count - 1];
  reserved = reserved_vid(worker);
  for (; done < keys.size(); ++done) {
    const LayerKey key(keys[done]);
    const uint32_t capacity =
        TreeRecord::capacity_for(key.remainder, static_cast<uint32_t>(payloads[done].size()));
    // Longer keys, and keys that share a slice, may need layers.
    if (key.remainder > 8 || !page->contains(key.slice)) break;
    if (count + done != 0 && key.slice <= last) break;
    if (!page->has_room(count + done, TreeRecord::bytes_for(key.remainder, capacity))) break;
    records[done] =
        write_slot(page, count + done, key.slice, key.remainder, nullptr, capacity, reserved);
    last = key.slice;
  }
  if (done == 0) return Status::ok;
  return publish_inserts(txn, page, before, before.with_inserts(done, true));
}

Status reserve(Transaction& txn, StorageControl& storage, Bytes key, uint32_t payload_bytes,
               Location& location) {
  WorkerContext& worker = txn.worker();
  for (;;) {
    const Status checked = txn.check();
    if (checked != Status::ok) return checked;
    location = locate(worker, storage, key);
    if (worker.cluster_failed()) return Status::cluster_failed;
    if (location.record != nullptr && is_ready(location.record, payload_bytes)) return Status::ok;
    // R23: pages before locks. (Roots grow in `adopt`, which reserves for itself.)
    if (!worker.reserve_pages(kPagesPerRestructure)) return Status::volatile_pool_exhausted;
    if (location.page == nullptr) {
      const Status status = install_missing(txn, storage, location.missing, payload_bytes);
      if (status != Status::ok) return status;
      continue;
    }
    Step step = Step::again;
    const Status status = change_page(txn, key, payload_bytes, location, step);
    if (status != Status::ok || step == Step::done) return status;
  }
}

}  // namespace atolldb
