#include "engine/mastertree/tree_access.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/format/increment.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/delta.h"
#include "engine/mastertree/pack.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/restructure.h"
#include "engine/transaction/dual_pointer.h"

namespace atolldb {

namespace {

static_assert(kPagesPerRestructure >= 1);  // add_layer takes one page, the layer's root

/// Returns a reserved VID. Ordinal 0 never belongs to a commit (R10).
Vid reserved_vid(const WorkerContext& worker) {
  const uint64_t epoch = worker.current_epoch();
  return fault::reserved_as_commit ? Vid::make(epoch, 1, Vid::kDeleted | Vid::kPendingTombstone)
                                   : Vid::reserved(epoch);
}

/// Returns whether the page may be changed, because it has not moved. REQUIRES: the page lock is
/// held.
bool may_change(PageVersion version) { return !version.is_moved() || fault::change_moved_pages; }

// The functions below release the page lock before they update the transaction's sets: the sets may
// be large, and other workers wait for the page. The entries hold the words that this worker has
// stored under the lock. If another worker changes such a word before the entry exists, the
// verification fails, as after any later change.

/// Adds a next layer, which a new key with the slice of `record` and another suffix needs. Moves
/// the record into that layer, as R7 requires, and turns its slot into the pointer to the layer.
/// REQUIRES: `page_lock` holds the page.
Status add_layer(Transaction& txn, BorderPage* page, TreeRecord* record, ScopedLock& page_lock) {
  WorkerContext& worker = txn.worker();
  ScopedLock lock;
  if (!fault::move_without_record_locks &&
      !lock.lock(worker, record->head.lock, worker.name_of(record))) {
    return Status::cluster_failed;
  }
  const Vid vid(record->head.vid.load(std::memory_order_relaxed));
  DCHECK(holds_page(worker, page) && record->head.remainder > 8);
  DCHECK(!vid.is_relocated() && !vid.is_being_written());
  DCHECK(record->capacity >= sizeof(DualPointer));
  const Bytes suffix{record->suffix(), record->suffix_bytes()};
  const LayerKey key(suffix);
  const uint32_t capacity = TreeRecord::capacity_for(key.remainder, record->capacity);
  const uint32_t bytes = TreeRecord::bytes_for(key.remainder, capacity);
  // From now on the layer may get keys whose tombstones the page has removed (R43).
  const uint64_t max_removed_vid = std::max(max_removed_vid_of(*page), vid.version());
  BorderPage* root =
      new_border(worker, tree_of(*page), static_cast<uint8_t>(page->header.layer + 1), SliceRange{},
                 BorderPage::capacity_for(bytes), max_removed_vid);
  TreeRecord* copy =
      write_slot(root, 0, key.slice, key.remainder, key.suffix().data(), capacity, vid);
  const uint16_t payload_bytes = record->payload_bytes.load(std::memory_order_relaxed);
  copy->payload_bytes.store(payload_bytes, std::memory_order_relaxed);
  std::memcpy(copy->payload(), record->payload(), payload_bytes);
  const PageVersion layer = PageVersion::make(0, 1, PageVersion::kAscending);
  root->header.set_version(layer);

  // From here on readers of the record wait. The page word changes (R6) before the layer can be
  // found. If a scanner has registered the old word, its verification fails from now on. A scanner
  // that loads the new word sees kBeingWritten or kNextLayer.
  record->head.vid.store(vid.with(Vid::kBeingWritten).word(), std::memory_order_relaxed);
  DualPointer* pointer = record->next_layer();
  // The pointer takes the place of payload bytes. They name no snapshot page, so the snapshot word
  // must be cleared (R44).
  if (!fault::layer_keeps_snapshot_word) {
    pointer->snapshot_word.store(0, std::memory_order_release);
  }
  pointer->volatile_word.store(root->self().word(), std::memory_order_release);
  const PageVersion before = page->header.version();
  const PageVersion after = fault::no_version_bump_on_layer ? before : before.with_change();
  page->header.set_version(after);
  record->head.vid.store(vid.with(Vid::kNextLayer).word(), std::memory_order_release);
  worker.metrics().next_layers.add();
  // A key that was absent from the page may now be inserted into the layer. So the layer's root is
  // also a successor, whose word is registered (R13).
  const PageVersionEntry successors[] = {{&page->header, after}, {&root->header, layer}};
  const size_t count = fault::forget_layer_root ? 1 : 2;
  lock.unlock();
  page_lock.unlock();
  return txn.page_replaced(&page->header, before, std::span(successors).first(count), {});
}

/// Publishes new slots: one release store makes them visible and changes the page word (R6).
/// REQUIRES: `page_lock` holds the page.
Status publish_inserts(Transaction& txn, BorderPage* page, PageVersion before, PageVersion after,
                       ScopedLock& page_lock) {
  DCHECK(holds_page(txn.worker(), page));
  DCHECK(after.count() > before.count() && after.count() <= page->slot_capacity());
  page->header.set_version(after);
  if (!fault::sets_under_page_lock) page_lock.unlock();
  txn.count_reservation();
  return txn.page_changed(&page->header, before, after);
}

/// Registers the new record with the VID that it got under the page lock. Before, the registered
/// page word stood for the absence of the key; now the record does (R13). Another transaction may
/// insert the key without a change of the page word.
Status cover_absence(Transaction& txn, RecordHead* record, Vid absent) {
  return fault::uncovered_reservation ? Status::ok : txn.register_read(record, absent);
}

/// Raises the page's newest removed version to that of the snapshot page, which may have elided the
/// record of the key (R18, R43). REQUIRES: the page is locked.
void raise_max_removed_vid(BorderPage* page, const ColdRecord& cold) {
  const uint64_t removed = std::max(max_removed_vid_of(*page), cold.max_removed_vid);
  page->header.max_removed_vid.store(removed, std::memory_order_relaxed);
}

/// Appends a reserved record, or in a delta tree also a copy of the record `cold`, or an open
/// record. REQUIRES: `page_lock` holds the page, and the page has room.
Status append_slot(Transaction& txn, BorderPage* page, const LayerKey& key, uint32_t capacity,
                   const ColdRecord* cold, Location& location, ScopedLock& page_lock) {
  WorkerContext& worker = txn.worker();
  const PageVersion before = page->header.version();
  const bool ascending = extends_order(page, before, key.slice, key.remainder);
  const bool is_copy = cold != nullptr && cold->exists;
  const bool is_open = cold != nullptr && !cold->is_read;
  const Vid vid = is_copy   ? cold->vid
                  : is_open ? Vid::open(worker.current_epoch())
                            : reserved_vid(worker);
  DCHECK(!before.is_moved() && page->contains(key.slice));
  DCHECK((cold != nullptr) == (page->header.is_delta != 0));
  TreeRecord* record = write_slot(page, before.count(), key.slice, key.remainder,
                                  key.suffix().data(), capacity, vid);
  if (cold != nullptr) worker.metrics().delta_added.add();
  if (is_copy) {
    DCHECK(!vid.is_deleted() && vid.is_in_place() && cold->payload_bytes <= capacity);
    record->payload_bytes.store(static_cast<uint16_t>(cold->payload_bytes),
                                std::memory_order_relaxed);
    std::memcpy(record->payload(), cold->payload.data(), cold->payload_bytes);
  } else if (cold != nullptr) {
    raise_max_removed_vid(page, *cold);
  }
  const PageVersion after = before.with_insert(ascending);
  location.page = page;
  location.record = record;
  location.conflict = nullptr;
  location.version = after;
  const Status status = publish_inserts(txn, page, before, after, page_lock);
  return status == Status::ok ? cover_absence(txn, &record->head, vid) : status;
}

/// Turns a stable tombstone into a pending one (R12). Scans rely on the page word for the absence
/// of a stable tombstone, so the word changes before a commit may insert the key. The flag is
/// stored first, so readers that have the new word see the flag, and register the record itself.
/// REQUIRES: `page_lock` holds the page.
Status make_pending(Transaction& txn, BorderPage* page, TreeRecord* record, ScopedLock& page_lock) {
  WorkerContext& worker = txn.worker();
  ScopedLock lock;
  if (!lock.lock(worker, record->head.lock, worker.name_of(record))) {
    return Status::cluster_failed;
  }
  DCHECK(holds_page(worker, page) && !page->header.version().is_moved());
  const Vid tombstone(record->head.vid.load(std::memory_order_relaxed));
  if (!tombstone.is_stable_tombstone()) return Status::ok;
  const Vid pending = tombstone.with(Vid::kPendingTombstone);
  record->head.vid.store(pending.word(), std::memory_order_release);
  const PageVersion before = page->header.version();
  const PageVersion after = fault::revive_unannounced ? before : before.with_change();
  page->header.set_version(after);
  lock.unlock();
  page_lock.unlock();
  txn.record_changed(&record->head, tombstone, pending);
  // Makes cursors of this transaction search again. A cursor may have passed the record that is
  // about to be inserted, or may remember it as a tombstone (R14).
  txn.count_reservation();
  const Status status = txn.page_changed(&page->header, before, after);
  return status == Status::ok ? cover_absence(txn, &record->head, pending) : status;
}

/// Adds the committed addition of an open record to `payload`, which has `payload_bytes` of the
/// snapshot's record. Returns the new length. REQUIRES: the record is locked.
uint32_t add_pending(TreeRecord* record, std::byte* payload, uint32_t payload_bytes) {
  PendingAdd add;
  CHECK(record->payload_bytes.load(std::memory_order_relaxed) == sizeof add);
  std::memcpy(&add, record->payload(), sizeof add);
  CHECK(add.end() <= record->capacity && payload_bytes <= record->capacity);
  return add_to_payload(payload, payload_bytes, add.offset, add.type, add.delta);
}

/// Gives an open record what the snapshot has for its key, so that a write can rely on it (R82). A
/// committed addition is added to that, unless the snapshot has it already (R83). Transactions that
/// have read the record as open will not commit, because its VID changes. REQUIRES: `page_lock`
/// holds the page, `cold` is current, and the record has room for it.
Status close_record(Transaction& txn, BorderPage* page, TreeRecord* record, const ColdRecord& cold,
                    ScopedLock& page_lock) {
  WorkerContext& worker = txn.worker();
  ScopedLock lock;
  if (!lock.lock(worker, record->head.lock, worker.name_of(record))) {
    return Status::cluster_failed;
  }
  DCHECK(holds_page(worker, page) && !page->header.version().is_moved());
  DCHECK(cold.is_read && page->header.is_delta != 0 && cold.payload_bytes <= record->capacity);
  const Vid open(record->head.vid.load(std::memory_order_relaxed));
  if (!open.is_open()) return Status::ok;  // another transaction has written the record
  DCHECK(open.is_in_place());
  const bool is_in_snapshot = cold.exists && cold.vid.version() >= open.version();
  const bool adds = open.ordinal() != 0 && !fault::forget_pending_adds &&
                    (!is_in_snapshot || fault::repeat_pending_adds);
  DCHECK(!is_in_snapshot || open.ordinal() == 0 || cold.vid.epoch() >= open.epoch());
  const Vid closed = adds ? Vid(open.version()) : cold.exists ? cold.vid : reserved_vid(worker);
  if (cold.exists || adds) {
    std::array<std::byte, MasterTree::kMaxPayloadBytes> payload;
    std::memcpy(payload.data(), cold.payload.data(), cold.payload_bytes);
    const uint32_t bytes =
        adds ? add_pending(record, payload.data(), cold.payload_bytes) : cold.payload_bytes;
    record->head.vid.store(open.with(Vid::kBeingWritten).word(), std::memory_order_relaxed);
    record->payload_bytes.store(static_cast<uint16_t>(bytes), std::memory_order_release);
    racy_write(record->payload(), payload.data(), bytes);
  }
  if (!cold.exists) {
    raise_max_removed_vid(page, cold);
  }
  record->head.vid.store(closed.word(), std::memory_order_release);
  lock.unlock();
  page_lock.unlock();
  txn.record_changed(&record->head, open, closed);
  return Status::ok;
}

/// Replaces the page, to make room for the request. If the records of one slice fill a page, the
/// record whose key is longer than the slice moves to a next layer. A collapse may have brought
/// that record here and taken room from the others (R70). REQUIRES: `page_lock` holds the page.
Status make_room(Transaction& txn, BorderPage* page, const RestructureRequest& request,
                 uint64_t slice, ScopedLock& page_lock) {
  const Status status = restructure(txn.worker(), &txn, page, request, page_lock);
  if (status != Status::payload_too_long) return status;
  DCHECK(holds_page(txn.worker(), page) && !page->header.version().is_moved());
  const uint32_t count = page->header.version().count();
  for (uint32_t slot = 0; slot < count; ++slot) {
    TreeRecord* record = page->record(slot);
    if (page->slices()[slot] != slice || record->head.remainder <= 8) continue;
    // Skips the record if it is a next layer already. The page lock keeps this state unchanged.
    if (record->head.load_acquire().is_next_layer()) continue;
    return add_layer(txn, page, record, page_lock);
  }
  return status;
}

}  // namespace

bool is_ready(const TreeRecord* record, uint32_t payload_bytes) {
  return record->capacity >= payload_bytes && !record->head.load_acquire().is_stable_tombstone();
}

namespace {

/// Returns whether the records of the key's last slice fit in one page: those of the delta page,
/// the others of the snapshot, and that of the key, with room for `payload_bytes`. Otherwise no
/// composer could write them. REQUIRES: the page is locked.
bool fit_in_one_page(BorderPage* page, const LayerKey& rest, Bytes key, uint32_t payload_bytes,
                     const ColdRecord& cold) {
  uint32_t bytes = page_bytes_of(payload_bytes);
  std::array<bool, 9> is_in_delta{};
  const size_t above = key.size() - rest.remainder;  // bytes of the slices of the layers above
  for (uint32_t slot = 0; rest.remainder <= 8 && slot < page->header.version().count(); ++slot) {
    const TreeRecord* record = page->record(slot);
    if (page->slices()[slot] != rest.slice || record->head.remainder > 8) continue;
    is_in_delta[record->head.remainder] = true;
    const Vid vid = record->head.load_acquire();
    const bool counts = record->head.remainder != rest.remainder && !vid.is_stable_tombstone();
    if (counts) bytes += page_bytes_of(record->capacity);
  }
  for (uint32_t i = 0; i < cold.neighbour_count; ++i) {
    const ColdRecord::Neighbour& neighbour = cold.neighbours[i];
    const bool is_short = rest.remainder <= 8;
    DCHECK(!is_short || (neighbour.key_bytes >= above && neighbour.key_bytes - above <= 8));
    if (is_short && is_in_delta[neighbour.key_bytes - above]) continue;
    bytes += neighbour.page_bytes;
  }
  return bytes <= kBorderUsableBytes;
}

}  // namespace

Status change_page(Transaction& txn, Bytes key, uint32_t payload_bytes, Location& location,
                   Step& step, const ColdRecord* cold, FullPage full_page) {
  WorkerContext& worker = txn.worker();
  BorderPage* page = location.page;
  const LayerKey rest(key.subspan(location.key_at));
  step = Step::again;
  reach(SyncPoint::locking_page);
  ScopedLock lock;
  if (!lock.lock_page(worker, page)) return Status::cluster_failed;
  const PageVersion version = page->header.version();
  if (!may_change(version)) return Status::ok;
  SlotView slot{Match::none, 0, nullptr};
  if (version.word() != location.version.word() || location.conflict != nullptr ||
      location.record != nullptr) {
    slot = find_slot(worker, page, version, rest);
  }
  const uint32_t wanted = std::max(payload_bytes, cold == nullptr ? 0 : cold->payload_bytes);
  const uint32_t capacity = TreeRecord::capacity_for(rest.remainder, wanted);
  RestructureRequest request;
  switch (slot.match) {
    case Match::next_layer:
      return Status::ok;
    case Match::conflict:
      return add_layer(txn, page, slot.record, lock);
    case Match::record: {
      const bool must_close = cold != nullptr && cold->is_read &&
                              slot.record->head.load_acquire().is_open() &&
                              txn.own_write(page->header.storage_id, key) == nullptr;
      const bool has_room = slot.record->capacity >= (must_close ? wanted : payload_bytes);
      if (has_room && !must_close) return make_pending(txn, page, slot.record, lock);
      if (cold != nullptr && !cold->is_current()) return Status::ok;
      if (has_room) return close_record(txn, page, slot.record, *cold, lock);
      if (cold != nullptr && !fit_in_one_page(page, rest, key, wanted, *cold)) {
        return Status::payload_too_long;
      }
      request.grow = slot.record;
      request.grow_capacity = capacity;
      return make_room(txn, page, request, rest.slice, lock);
    }
    case Match::none:
      break;
  }
  // R77: installers change the word of the pointer before they remove a record of its range from
  // the delta tree, and remove it under this lock.
  if (cold != nullptr && !cold->is_current()) return Status::ok;
  if (cold != nullptr && !fit_in_one_page(page, rest, key, wanted, *cold)) {
    return Status::payload_too_long;
  }
  const uint32_t record_bytes = TreeRecord::bytes_for(rest.remainder, capacity);
  if (page->has_room(version.count(), record_bytes)) {
    step = Step::done;
    return append_slot(txn, page, rest, capacity, cold, location, lock);
  }
  if (full_page == FullPage::leave) {
    step = Step::full;
    return Status::ok;
  }
  request.new_slice = rest.slice;
  request.new_record_bytes = record_bytes;
  return make_room(txn, page, request, rest.slice, lock);
}

Status install_missing(Transaction& txn, StorageControl& storage, const MissingPage& missing,
                       uint32_t payload_bytes) {
  if (!missing.view.snapshot.is_null()) return copy_up(txn, *missing.pointer, missing.view);
  // Every null word below the root has a snapshot page (R44).
  CHECK(missing.pointer == &storage.root);
  if (txn.depends_on(&storage.root)) return Status::pointer_installed;
  WorkerContext& worker = txn.worker();
  if (!worker.reserve_pages(1)) return Status::volatile_pool_exhausted;
  const uint32_t record_bytes =
      TreeRecord::bytes_with(8, std::max(payload_bytes, storage.payload_bytes));
  BorderPage* page = new_border(worker, {storage.id, false}, 0, SliceRange{},
                                BorderPage::capacity_for(record_bytes),
                                storage.root_max_removed_vid.load(std::memory_order_relaxed));
  uint64_t word = missing.view.page.word();
  if (!install_page(storage.root.volatile_word, word, page->self().word())) {
    worker.pages().give_back(&page->header);
  }
  return Status::ok;
}

Status reserve_run(Transaction& txn, StorageControl& storage, std::span<const Bytes> keys,
                   std::span<const Bytes> payloads, std::span<TreeRecord*> records, uint32_t& done,
                   Vid& reserved) {
  DCHECK(!keys.empty() && keys.size() <= records.size() && keys.size() <= payloads.size());
  done = 0;
  Status status = txn.check();
  if (status != Status::ok) return status;
  WorkerContext& worker = txn.worker();
  const uint64_t first = slice_of(keys[0]);
  const BorderView view = find_border(worker, storage, root_link(storage), first);
  if (view.page == nullptr) return Status::ok;
  BorderPage* page = view.page;
  reach(SyncPoint::locking_page);
  ScopedLock lock;
  if (!lock.lock_page(worker, page)) return Status::cluster_failed;
  const PageVersion before = page->header.version();
  const uint32_t count = before.count();
  if (!may_change(before)) return Status::ok;
  if (!before.is_ascending()) return Status::ok;
  DCHECK(count <= page->slot_capacity() && page->contains(first));
  uint64_t last = count == 0 ? 0 : page->slices()[count - 1];
  reserved = reserved_vid(worker);
  for (; done < keys.size(); ++done) {
    const LayerKey key(keys[done]);
    const uint32_t capacity =
        TreeRecord::capacity_for(key.remainder, static_cast<uint32_t>(payloads[done].size()));
    // A key that is longer than a slice, or shares its slice with another key, may need a layer.
    if (key.remainder > 8 || !page->contains(key.slice)) break;
    if (count + done != 0 && key.slice <= last) break;
    if (!page->has_room(count + done, TreeRecord::bytes_for(key.remainder, capacity))) break;
    records[done] =
        write_slot(page, count + done, key.slice, key.remainder, nullptr, capacity, reserved);
    last = key.slice;
  }
  if (done == 0) return Status::ok;
  return publish_inserts(txn, page, before, before.with_inserts(done, true), lock);
}

Status reserve(Transaction& txn, StorageControl& storage, Bytes key, uint32_t payload_bytes,
               Reservation reservation, Location& location) {
  WorkerContext& worker = txn.worker();
  // A full page of hashes is spread (R101). It is divided if that was not possible, or if the new
  // page with the key is full again.
  FullPage full_page = storage.type == StorageType::hash ? FullPage::leave : FullPage::divide;
  for (;;) {
    const Status checked = txn.check();
    if (checked != Status::ok) return checked;
    location = locate(worker, storage, key);
    if (worker.cluster_failed()) return Status::cluster_failed;
    if (location.record != nullptr && is_ready(location.record, payload_bytes)) return Status::ok;
    if (writes_to_delta(storage, location.missing)) {
      const Location cold = location;
      const Absent absent =
          reservation == Reservation::blind ? Absent::is_added_blindly : Absent::is_added;
      const Status status =
          reserve_in_delta(txn, storage, cold, key, payload_bytes, absent, location);
      if (status != Status::ok || location.record != nullptr) return status;
      continue;
    }
    // R23 requires that pages are reserved before locks are taken. Roots grow in `adopt`, which
    // reserves its own pages.
    if (!worker.reserve_pages(kPagesPerRestructure)) return Status::volatile_pool_exhausted;
    if (location.page == nullptr) {
      const Status status = install_missing(txn, storage, location.missing, payload_bytes);
      if (status != Status::ok) return status;
      continue;
    }
    Step step = Step::again;
    if (location.key_at != 0) full_page = FullPage::divide;  // only the first layer has hashes
    Status status = change_page(txn, key, payload_bytes, location, step, nullptr, full_page);
    if (status == Status::ok && step == Step::full) {
      // The page that was full is in the first layer, so the whole key lies there.
      const auto remainder = static_cast<uint32_t>(key.size());
      status = spread_around(txn, storage, slice_of(key),
                             TreeRecord::bytes_with(remainder, payload_bytes));
      full_page = FullPage::divide;
      step = Step::again;
    }
    DCHECK(status != Status::ok || step == Step::again || location.record != nullptr);
    if (status != Status::ok || step == Step::done) return status;
  }
}

}  // namespace atolldb
