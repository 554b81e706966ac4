// Additions that need not read the record (R83).
#include <algorithm>
#include <array>

#include "engine/format/increment.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/delta.h"
#include "engine/mastertree/snapshot_tree.h"
#include "engine/transaction/optimistic_read.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {

namespace {

using Payload = std::array<std::byte, MasterTree::kMaxPayloadBytes>;

/// Adds to a record that is read, if need be created, or made longer.
Status add_to_record(Transaction& txn, const MasterTree& tree, Bytes key, uint32_t offset,
                     IncrementType type, const void* delta) {
  Status status = tree.increment(txn, key, offset, type, delta);
  if (status != Status::not_found && status != Status::out_of_range) return status;
  Payload payload;
  uint32_t bytes = 0;
  status = tree.get(txn, key, payload.data(), payload.size(), bytes);
  if (status != Status::ok && status != Status::not_found) return status;
  if (status == Status::not_found) bytes = 0;
  CHECK(bytes <= payload.size());
  std::array<std::byte, kMaxIncrementBytes> number{};
  copy_bytes(number.data(), delta, increment_bytes(type));
  bytes = add_to_payload(payload.data(), bytes, offset, type, number.data());
  return tree.upsert(txn, key, Bytes(payload).first(bytes));
}

/// Plans an addition to the open record of the key, or adds such a record. Sets `is_planned` to
/// false if the record is not open. The caller then adds to the record itself.
Status add_blindly(Transaction& txn, StorageControl& storage, Bytes key, uint32_t offset,
                   IncrementType type, const void* delta, bool& is_planned) {
  const Location cold = locate(txn.worker(), storage, key);
  if (txn.worker().cluster_failed()) return Status::cluster_failed;
  if (cold.record != nullptr || !writes_to_delta(storage, cold.missing)) return Status::ok;
  // Otherwise the log could elide an update that this addition depends on.
  const uint32_t snapshot = cold.missing.view.snapshot.snapshot();
  if (!txn.worker().add_window().is_open(snapshot, txn.worker().current_epoch())) {
    return Status::ok;
  }
  const uint32_t room = std::max<uint32_t>(offset + increment_bytes(type), sizeof(PendingAdd));
  Location location;
  Status status =
      reserve_in_delta(txn, storage, cold, key, room, Absent::is_added_blindly, location);
  if (status != Status::ok || location.record == nullptr) return status;
  reach(SyncPoint::adding_blindly);
  // An open record that was there may have been added after the install of a later snapshot. The
  // window is not open for that one. Acquire: loaded after the record was found.
  const uint64_t word = cold.missing.pointer->snapshot_word.load(std::memory_order_acquire);
  const bool is_same = word == cold.missing.view.snapshot.word();
  if (!is_same && !fault::add_unmarked_open_records) return Status::ok;
  const RecordRef ref = make_ref(txn.worker(), location.record, key);
  Vid seen;
  status = read_stable(txn.worker(), *ref.record, seen, [](Vid) {});
  if (status != Status::ok) return status;
  // A relocated record keeps its VID when the record in its new place changes. So the read set must
  // not have it, and the caller searches again.
  if (seen.is_relocated() && !fault::add_to_moved_records) return Status::ok;
  if (!seen.is_open() || seen.ordinal() != 0) return Status::ok;
  // If a drain removes the record, or another transaction writes it, this one ends (R82).
  status = txn.register_read(ref.record, seen);
  if (status != Status::ok) return status;
  DCHECK(location.page->header.is_delta != 0 && location.record->capacity >= room);
  is_planned = true;
  txn.record_blind_write();
  return txn.write_add(ref, key, offset, type, delta);
}

}  // namespace

Status settle_add(Transaction& txn, StorageControl& storage, Bytes key) {
  const WriteEntry* own = txn.own_add(storage.id, key);
  CHECK(own != nullptr);
  const Location cold = locate(txn.worker(), storage, key);
  if (txn.worker().cluster_failed()) return Status::cluster_failed;
  // The record was drained, or its range is in volatile pages now.
  if (cold.record != nullptr || !cold.missing.view.page.has_delta()) return txn.miss_own_write();
  const DualPointer::View& view = cold.missing.view;
  Status status = txn.register_pointer(cold.missing.pointer, view.page.word());
  if (status != Status::ok) return status;
  Payload payload;
  TreeRead request{.count = MasterTree::kMaxPayloadBytes, .out = payload.data()};
  status = read_snapshot_record(txn.worker(), view.snapshot, LayerKey(key.subspan(cold.key_at)),
                                request);
  if (status != Status::ok && status != Status::not_found) return status;
  const uint32_t bytes = status == Status::ok ? request.payload_bytes : 0;
  const LogRecord& log = txn.log_of(*own);
  DCHECK(log.type == LogType::add && log.payload_bytes <= kMaxIncrementBytes);
  const uint32_t sum_bytes = add_to_payload(payload.data(), bytes, log.payload_offset,
                                            static_cast<IncrementType>(log.number), log.payload());
  return MasterTree(storage).upsert(txn, key, Bytes(payload).first(sum_bytes));
}

Status settle_adds(Transaction& txn, StorageControl& storage) {
  for (size_t i = 0; i < txn.planned_writes().size() && txn.plans_adds(); ++i) {
    const LogRecord& log = txn.log_of(txn.planned_writes()[i]);
    if (log.type != LogType::add || log.storage_id != storage.id) continue;
    const Status status = settle_add(txn, storage, log.key_span());
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

Status MasterTree::add(Transaction& txn, Bytes key, uint32_t offset, IncrementType type,
                       const void* delta) const {
  const uint32_t bytes = increment_bytes(type);
  if (bytes == 0) return Status::invalid_argument;
  if (key.size() > kMaxKeyBytes) return Status::key_too_long;
  if (offset > kMaxPayloadBytes - bytes) return Status::payload_too_long;
  if (txn.is_serializable()) {
    Status status = storage_.check(txn, 0);
    WriteEntry* own = status == Status::ok ? txn.own_add(storage_.id(), key) : nullptr;
    bool is_planned = own != nullptr && txn.add_to_own(*own, offset, type, delta);
    if (status == Status::ok && txn.own_write(storage_.id(), key) == nullptr) {
      status = add_blindly(txn, storage_.control(), key, offset, type, delta, is_planned);
    }
    // Otherwise the operations of add_to_record count themselves.
    if (is_planned) storage_.count_operations(txn, 1);
    if (status != Status::ok || is_planned) return status;
  }
  return add_to_record(txn, *this, key, offset, type, delta);
}

}  // namespace atolldb
