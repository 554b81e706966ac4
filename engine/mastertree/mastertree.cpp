#include "engine/mastertree/mastertree.h"

#include <algorithm>
#include <array>
#include <optional>

#include "engine/mastertree/delta.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/prefetch.h"
#include "engine/mastertree/snapshot_tree.h"
#include "engine/mastertree/tree_access.h"
#include "engine/transaction/optimistic_read.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

constexpr size_t kMaxRun = 16;  // records that insert_many reserves at once

Status check_lengths(Bytes key, size_t payload_bytes) {
  if (key.size() > MasterTree::kMaxKeyBytes) return Status::key_too_long;
  if (payload_bytes > MasterTree::kMaxPayloadBytes) return Status::payload_too_long;
  return Status::ok;
}

/// Registers that the key is absent: through the root word of an empty tree (R4), or through the
/// page that would hold it (R12).
Status register_absent(Transaction& txn, const StorageControl& storage, Bytes key,
                       const Location& location) {
  if (txn.has_lost_write(storage.id, key)) return txn.miss_own_write();
  const Status status =
      location.missing
          ? txn.register_pointer(location.missing.pointer, location.missing.view.page.word())
          : txn.register_page(&location.page->header, location.version);
  return status == Status::ok ? Status::not_found : status;
}

/// `write`: the record will be written, so a snapshot page is copied up before the read (R5).
enum class Intent : uint8_t { read, write };

/// Returns whether to install a missing volatile page. A write installs the page if there is a
/// snapshot page. A retry installs the page if the previous attempt relied on the null word (R5).
/// No page is installed where writes go to the delta tree.
bool wants_page(const Transaction& txn, const MissingPage& missing, bool uses_delta,
                Intent intent) {
  if (!missing || uses_delta) return false;
  return txn.installs_on_read() || (intent == Intent::write && !missing.view.snapshot.is_null());
}

/// Reads a key below a missing page, for which the delta tree has no record. One entry in the
/// pointer set covers all reads below it.
Status read_below(Transaction& txn, const StorageControl& storage, const Location& location,
                  Bytes key, TreeRead& request) {
  if (txn.has_lost_write(storage.id, key)) return txn.miss_own_write();
  const DualPointer::View& view = location.missing.view;
  DCHECK(location.page == nullptr && location.key_at <= key.size());
  const Status status = txn.register_pointer(location.missing.pointer, view.page.word());
  if (status != Status::ok) return status;
  if (view.snapshot.is_null()) return Status::not_found;
  return read_snapshot_record(txn.worker(), view.snapshot, LayerKey(key.subspan(location.key_at)),
                              request);
}

/// Reads a key of the snapshot, for which the delta tree has no record. `absent`: where the search
/// in the delta tree has ended.
Status read_unchanged(Transaction& txn, const StorageControl& storage, const Location& cold,
                      const Location& absent, Bytes key, TreeRead& request) {
  DCHECK(cold.missing.view.page.has_delta() && absent.record == nullptr);
  request.seen = {};
  const Status found = read_below(txn, storage, cold, key, request);
  const Status status = register_absent_from_delta(txn, absent, key, request.seen);
  return status == Status::ok ? found : status;
}

/// Sets `request.seen` to the version of the snapshot's record, or to 0 if the snapshot lacks it:
/// this transaction has written an open record, and its own write does not change the version.
Status find_version_below(Transaction& txn, const Location& cold, Bytes key, TreeRead& request) {
  const DualPointer::View& view = cold.missing.view;
  Status status = txn.register_pointer(cold.missing.pointer, view.page.word());
  if (status != Status::ok) return status;
  TreeRead below{};
  status =
      read_snapshot_record(txn.worker(), view.snapshot, LayerKey(key.subspan(cold.key_at)), below);
  // A commit may have added to the record (R83).
  const Vid pending = has_pending_add(request.seen) ? Vid(request.seen.version()) : Vid();
  request.seen = pending.version() > below.seen.version() ? pending : below.seen;
  return status == Status::not_found ? Status::ok : status;
}

/// Returns whether the record of the delta tree has an addition of another transaction. A read then
/// closes the record first, because it needs the sum (R83).
bool must_close(Transaction& txn, const StorageControl& storage, const Location& location,
                Bytes key) {
  return has_pending_add(location.record->head.load_acquire()) &&
         txn.own_write(storage.id, key) == nullptr;
}

/// Checks the key of an operation that depends on the record. Settles an addition that this
/// transaction has planned to it (R83).
Status check_key(Transaction& txn, StorageControl& storage, Bytes key) {
  const Status status = check_lengths(key, 0);
  if (status != Status::ok || txn.own_add(storage.id, key) == nullptr) [[likely]]
    return status;
  return settle_add(txn, storage, key);
}

/// Finds an existing record and reads the bytes that `request` asks for. With Intent::write, `ref`
/// gets the place of a volatile record. With Intent::read, or if the transaction reads a snapshot,
/// `ref` may stay empty.
Status find_and_read(Transaction& txn, const StorageHandle& handle, Bytes key, Intent intent,
                     TreeRead& request, RecordRef& ref) {
  StorageControl& storage = handle.control();
  Status status = handle.check_volatile(txn);
  if (status != Status::ok) [[unlikely]] {
    if (txn.snapshot() == nullptr) return status;
    SnapshotTreeAccess access(txn, handle);
    return intent == Intent::read ? access.read(key, request) : access.read_for_write(key, request);
  }
  status = check_key(txn, storage, key);
  if (status != Status::ok) return status;
  for (;;) {
    Location location = locate(txn.worker(), storage, key);
    std::optional<Location> cold;  // empty for most reads, which then need not clear it
    if (location.record == nullptr) {
      if (txn.worker().cluster_failed()) return Status::cluster_failed;
      // The choice is read once, because it may change at any time.
      const bool uses_delta = writes_to_delta(storage, location.missing);
      if (intent == Intent::write && uses_delta) {
        cold = location;
        status = reserve_in_delta(txn, storage, *cold, key, 0, Absent::stays, location);
        if (status != Status::ok) return status;
        if (location.record == nullptr) continue;
      } else if (location.missing.view.page.has_delta()) {
        cold = location;
        location = locate(txn.worker(), storage, key, delta_link(storage));
        if (location.record == nullptr) {
          return read_unchanged(txn, storage, *cold, location, key, request);
        }
        if (must_close(txn, storage, location, key)) [[unlikely]] {
          status = reserve_in_delta(txn, storage, *cold, key, 0, Absent::stays, location);
          if (status != Status::ok) return status;
          continue;
        }
      } else {
        if (!wants_page(txn, location.missing, uses_delta, intent)) {
          return location.missing ? read_below(txn, storage, location, key, request)
                                  : register_absent(txn, storage, key, location);
        }
        status = install_missing(txn, storage, location.missing, 0);
        if (status != Status::ok) return status;
        continue;
      }
    }
    DCHECK(location.page != nullptr && location.conflict == nullptr);
    ref = make_ref(txn.worker(), location.record, key);
    status = read_tree_record(txn, ref, key, request);
    if (request.seen.is_open() && cold && !fault::open_records_hide) [[unlikely]] {
      // The registered VID stands for "not changed since the snapshot" (R82).
      const bool is_own = txn.own_write(ref, key) != nullptr;
      // Since the check above, a commit has added to the record.
      if (status == Status::not_found && has_pending_add(request.seen) && !is_own) continue;
      if (status == Status::not_found && intent == Intent::read && !is_own) {
        request.seen = {};
        return read_below(txn, storage, *cold, key, request);
      }
      const bool has_answer = status == Status::ok || status == Status::not_found;
      if (is_own && has_answer && request.wants_version) {
        const Status found = find_version_below(txn, *cold, key, request);
        if (found != Status::ok) return found;
      }
    }
    if (status != Status::ok || !request.seen.is_relocated()) return status;
    if (request.seen.is_moved()) {
      status = await_move(txn.worker(), page_of(ref.record));
      if (status != Status::ok) return status;
    }
  }
}

/// Reserves the record and reads its VID into `seen`. Does not register the record.
Status reserve_and_probe(Transaction& txn, const StorageHandle& handle, Bytes key,
                         uint32_t payload_bytes, Reservation reservation, RecordRef& ref,
                         Vid& seen) {
  const Status usable = handle.check(txn);
  if (usable != Status::ok) return usable;
  for (;;) {
    Location location;
    Status status = reserve(txn, handle.control(), key, payload_bytes, reservation, location);
    if (status != Status::ok) return status;
    ref = make_ref(txn.worker(), location.record, key);
    status = read_stable(txn.worker(), *ref.record, seen, [](Vid) {});
    if (status != Status::ok || !seen.is_relocated()) return status;
    if (seen.is_moved()) {
      status = await_move(txn.worker(), page_of(ref.record));
      if (status != Status::ok) return status;
    }
  }
}

/// Handles a pending increment or update of the same record, which the caller is going to replace
/// in the write set. The pending write relies on a record that exists and is long enough, so the
/// new write must keep these conditions (R33). `seen`: the record's current VID.
Status keep_own_result(Transaction& txn, const RecordRef& ref, Bytes key, Vid seen) {
  WriteEntry* own = txn.find_write(ref, key);
  if (own == nullptr || txn.log_of(*own).type != LogType::update) return Status::ok;
  if (fault::forget_own_increment) return Status::ok;
  if (seen.is_deleted()) return Status::write_conflict;
  return own->increment != 0 ? txn.materialize_increment(ref, *own, &seen) : Status::ok;
}

}  // namespace

Status MasterTree::get(Transaction& txn, Bytes key, void* out, uint32_t capacity,
                       uint32_t& payload_bytes) const {
  RecordRef ref;
  TreeRead request{.offset = 0, .count = capacity, .exact = false, .out = out};
  const Status status = find_and_read(txn, storage_, key, Intent::read, request, ref);
  payload_bytes = request.payload_bytes;
  return status;
}

Status MasterTree::get(Transaction& txn, Bytes key, void* out, uint32_t capacity,
                       uint32_t& payload_bytes, Vid& seen) const {
  RecordRef ref;
  TreeRead request{
      .offset = 0, .count = capacity, .exact = false, .wants_version = true, .out = out};
  const Status status = find_and_read(txn, storage_, key, Intent::read, request, ref);
  payload_bytes = request.payload_bytes;
  seen = request.seen;
  return status;
}

Status MasterTree::get_range(Transaction& txn, Bytes key, uint32_t offset, uint32_t count,
                             void* out) const {
  RecordRef ref;
  TreeRead request{.offset = offset, .count = count, .exact = true, .out = out};
  return find_and_read(txn, storage_, key, Intent::read, request, ref);
}

Status MasterTree::get_for_update(Transaction& txn, Bytes key, void* out, uint32_t capacity,
                                  uint32_t& payload_bytes, RecordRef& ref) const {
  TreeRead request{.offset = 0, .count = capacity, .exact = false, .out = out};
  const Status status = find_and_read(txn, storage_, key, Intent::write, request, ref);
  payload_bytes = request.payload_bytes;
  return status;
}

Status MasterTree::get_many(Transaction& txn, std::span<const Bytes> keys, void* out,
                            uint32_t stride, std::span<Status> results) const {
  if (results.size() < keys.size()) return Status::invalid_argument;
  prefetch(txn, keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    uint32_t payload_bytes = 0;
    results[i] =
        get(txn, keys[i], static_cast<std::byte*>(out) + i * stride, stride, payload_bytes);
    if (is_abort(results[i])) return results[i];
  }
  return Status::ok;
}

Status MasterTree::insert(Transaction& txn, Bytes key, Bytes payload) const {
  Status status = check_lengths(key, payload.size());
  if (status != Status::ok) return status;
  if (!txn.is_serializable()) [[unlikely]]
    return SnapshotTreeAccess(txn, storage_).insert(key, payload);
  RecordRef ref;
  Vid seen;
  status = reserve_and_probe(txn, storage_, key, static_cast<uint32_t>(payload.size()),
                             Reservation::dependent, ref, seen);
  if (status != Status::ok) return status;
  DCHECK(!seen.is_relocated() && txn.is_serializable());
  status = keep_own_result(txn, ref, key, seen);
  if (status != Status::ok) return status;
  // The result depends on whether the record exists, so the record enters the read set (R12).
  status = txn.register_read(ref.record, seen);
  if (status != Status::ok) return status;
  if (txn.is_visible(ref, key, seen)) return Status::already_exists;
  return txn.write_insert(ref, key, payload);
}

Status MasterTree::insert_many(Transaction& txn, std::span<const Bytes> keys,
                               std::span<const Bytes> payloads) const {
  if (keys.size() != payloads.size()) return Status::invalid_argument;
  const Status usable = storage_.check(txn, 0);
  if (usable != Status::ok) return usable;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Status status = check_lengths(keys[i], payloads[i].size());
    if (status != Status::ok) return status;
  }
  if (!txn.is_serializable()) [[unlikely]] {
    for (size_t i = 0; i < keys.size(); ++i) {
      const Status status = SnapshotTreeAccess(txn, storage_).insert(keys[i], payloads[i]);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }
  std::array<TreeRecord*, kMaxRun> records;
  while (!keys.empty()) {
    uint32_t done = 0;
    Vid reserved;
    Status status =
        reserve_run(txn, storage_.control(), keys.first(std::min(keys.size(), records.size())),
                    payloads, records, done, reserved);
    storage_.count_operations(txn, done);
    for (uint32_t i = 0; i < done && status == Status::ok; ++i) {
      const RecordRef ref = make_ref(txn.worker(), records[i], keys[i]);
      status = txn.register_read(ref.record, reserved);
      if (status == Status::ok) status = txn.write_insert(ref, keys[i], payloads[i]);
    }
    if (status == Status::ok && done == 0) {
      status = insert(txn, keys[0], payloads[0]);
      done = 1;
    }
    if (status != Status::ok) return status;
    DCHECK(done != 0 && done <= keys.size());
    keys = keys.subspan(done);
    payloads = payloads.subspan(done);
  }
  return Status::ok;
}

Status MasterTree::upsert(Transaction& txn, Bytes key, Bytes payload) const {
  Status status = check_lengths(key, payload.size());
  if (status != Status::ok) return status;
  if (!txn.is_serializable()) [[unlikely]]
    return SnapshotTreeAccess(txn, storage_).upsert(key, payload);
  RecordRef ref;
  Vid seen;
  status = reserve_and_probe(txn, storage_, key, static_cast<uint32_t>(payload.size()),
                             Reservation::blind, ref, seen);
  if (status != Status::ok) return status;
  // A living record needs no read entry, because the outcome does not depend on the previous state.
  // A tombstone or an open record needs one: a compaction or a drain may remove it before this
  // commit, and scans of this transaction would then miss this write. The read entry makes such an
  // attempt fail (R20).
  status = keep_own_result(txn, ref, key, seen);
  if (status == Status::ok && seen.is_deleted()) status = txn.register_read(ref.record, seen);
  if (status != Status::ok) return status;
  txn.record_blind_write();
  return txn.write_insert(ref, key, payload);
}

Status MasterTree::update(Transaction& txn, Bytes key, Bytes payload) const {
  Status status = check_lengths(key, payload.size());
  if (status != Status::ok) return status;
  if (!txn.is_serializable()) [[unlikely]]
    return SnapshotTreeAccess(txn, storage_).update(key, payload);
  TreeRead request{};
  RecordRef ref;
  status = find_and_read(txn, storage_, key, Intent::write, request, ref);
  if (status != Status::ok) return status;
  DCHECK(ref.record != nullptr);
  if (reinterpret_cast<TreeRecord*>(ref.record)->capacity < payload.size()) {
    // The record is too small, so reserve_and_probe moves it to a larger copy. A pending write
    // stays valid, because commits and look-ups follow the record to the copy.
    Vid seen;
    status = reserve_and_probe(txn, storage_, key, static_cast<uint32_t>(payload.size()),
                               Reservation::dependent, ref, seen);
    if (status != Status::ok) return status;
  }
  return txn.write_insert(ref, key, payload);
}

Status MasterTree::update_range(Transaction& txn, Bytes key, uint32_t offset, Bytes bytes) const {
  if (!txn.is_serializable()) [[unlikely]]
    return SnapshotTreeAccess(txn, storage_).update_range(key, offset, bytes);
  RecordRef ref;
  TreeRead request{};
  const Status status = find_and_read(txn, storage_, key, Intent::write, request, ref);
  if (status != Status::ok) return status;
  DCHECK(ref.record != nullptr);
  if (offset + bytes.size() > request.payload_bytes) return Status::out_of_range;
  return txn.write_update(ref, key, offset, bytes, request.payload_bytes);
}

Status MasterTree::update_range(Transaction& txn, const RecordRef& ref, Bytes key, uint32_t offset,
                                Bytes bytes) const {
  // A scan has found the record in a snapshot. Searches for it again, for writing.
  if (ref.record == nullptr) return update_range(txn, key, offset, bytes);
  const Status status = txn.check();
  if (status != Status::ok) return status;
  if (offset + bytes.size() > ref.payload_bytes) return Status::out_of_range;
  return txn.write_update(ref, key, offset, bytes, ref.payload_bytes);
}

Status MasterTree::increment(Transaction& txn, Bytes key, uint32_t offset, IncrementType type,
                             const void* delta) const {
  Status status = storage_.check_volatile(txn);
  if (status != Status::ok) [[unlikely]] {
    return txn.snapshot() == nullptr
               ? status
               : SnapshotTreeAccess(txn, storage_).increment(key, offset, type, delta);
  }
  status = check_key(txn, storage_.control(), key);
  if (status != Status::ok) return status;
  for (;;) {
    Location location = locate(txn.worker(), storage_.control(), key);
    if (location.record == nullptr) {
      if (txn.worker().cluster_failed()) return Status::cluster_failed;
      if (writes_to_delta(storage_.control(), location.missing)) {
        const Location cold = location;
        status = reserve_in_delta(txn, storage_.control(), cold, key, 0, Absent::stays, location);
        if (status != Status::ok) return status;
        if (location.record == nullptr) continue;
      } else {
        if (!wants_page(txn, location.missing, false, Intent::write)) {
          return register_absent(txn, storage_.control(), key, location);
        }
        status = install_missing(txn, storage_.control(), location.missing, 0);
        if (status != Status::ok) return status;
        continue;
      }
    }
    const RecordRef ref = make_ref(txn.worker(), location.record, key);
    uint32_t payload_bytes = 0;
    Vid seen;
    status = read_stable(txn.worker(), *ref.record, seen, [&](Vid) {
      payload_bytes = location.record->payload_bytes.load(std::memory_order_acquire);
    });
    if (status != Status::ok) return status;
    if (seen.is_relocated()) {
      if (seen.is_moved()) {
        status = await_move(txn.worker(), page_of(ref.record));
        if (status != Status::ok) return status;
      }
      continue;
    }
    if (!txn.is_visible(ref, key, seen)) {
      status = txn.register_read(ref.record, seen);
      return status == Status::ok ? Status::not_found : status;
    }
    if (WriteEntry* own = txn.find_write(ref, key);
        own != nullptr && txn.log_of(*own).type == LogType::insert) {
      payload_bytes = txn.log_of(*own).payload_bytes;
    }
    if (offset + uint64_t{increment_bytes(type)} > payload_bytes) {
      // The result depends on the length, so the commit verifies it.
      status = txn.register_read(ref.record, seen);
      return status == Status::ok ? Status::out_of_range : status;
    }
    // Needs no read entry: the commit checks under the lock that the record still exists (R33).
    txn.record_blind_write();
    return txn.write_increment(ref, key, offset, type, delta);
  }
}

Status MasterTree::erase(Transaction& txn, Bytes key) const {
  if (!txn.is_serializable()) [[unlikely]]
    return SnapshotTreeAccess(txn, storage_).erase(key);
  RecordRef ref;
  TreeRead request{};
  const Status status = find_and_read(txn, storage_, key, Intent::write, request, ref);
  return status == Status::ok ? txn.write_erase(ref, key) : status;
}

Status MasterTree::erase(Transaction& txn, const RecordRef& ref, Bytes key) const {
  if (ref.record == nullptr) return erase(txn, key);
  const Status status = txn.check();
  return status == Status::ok ? txn.write_erase(ref, key) : status;
}

void MasterTree::prefetch(Transaction& txn, std::span<const Bytes> keys, uint32_t records) const {
  if (storage_.check_volatile(txn, 0) != Status::ok) return;
  prefetch_records(txn.worker(), storage_.control(), keys, records);
}

}  // namespace atolldb
