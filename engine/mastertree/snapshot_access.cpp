#include <array>
#include <cstring>

#include "engine/mastertree/mastertree.h"
#include "engine/mastertree/snapshot_tree.h"
#include "engine/mastertree/tree_access.h"

namespace atolldb {

/// The whole payload of a record.
struct SnapshotTreeAccess::Whole {
  std::array<std::byte, MasterTree::kMaxPayloadBytes> bytes;
  uint32_t count = 0;
};

Status SnapshotTreeAccess::check_and_read(Bytes key, TreeRead& request, bool writes) {
  const Status status = handle_.check_snapshot(txn_, writes);
  if (status != Status::ok) return status;
  if (key.size() > MasterTree::kMaxKeyBytes) return Status::key_too_long;
  if (const WriteEntry* own = txn_.own_write(handle_.id(), key)) {
    if (request.wants_version) {
      const Status found = find_version(key, request.seen);
      if (found != Status::ok) return found;
    }
    // A pending write is a whole record or an erasure, because `plan` never writes parts.
    const LogRecord& log = txn_.log_of(*own);
    return log.type == LogType::erase ? Status::not_found : read_own_insert(log, request);
  }
  return read_in_snapshot(key, request);
}

/// Reads the snapshot's record, without own writes.
Status SnapshotTreeAccess::read_in_snapshot(Bytes key, TreeRead& request) {
  DCHECK(txn_.snapshot() != nullptr);
  const SnapshotPointer root = txn_.snapshot()->root_of(handle_.id());
  if (root.is_null()) return Status::not_found;
  return read_snapshot_record(txn_.worker(), root, LayerKey(key), request);
}

/// Sets `seen` to the version of the snapshot's record, or to 0 if the snapshot lacks the record.
Status SnapshotTreeAccess::find_version(Bytes key, Vid& seen) {
  TreeRead request{};
  const Status status = read_in_snapshot(key, request);
  if (status != Status::ok && status != Status::not_found) return status;
  DCHECK(status == Status::ok || request.seen == Vid());
  seen = request.seen;
  return Status::ok;
}

Status SnapshotTreeAccess::read_whole(Bytes key, Whole& record) {
  TreeRead request{.count = MasterTree::kMaxPayloadBytes, .out = record.bytes.data()};
  const Status status = read_for_write(key, request);
  record.count = request.payload_bytes;
  DCHECK(status != Status::ok || record.count <= record.bytes.size());
  return status;
}

/// Finds the volatile record that the commit writes to. Reads nothing from the record: the commit
/// locks it and checks whether it has changed since the snapshot.
Status SnapshotTreeAccess::find_place(Bytes key, uint32_t payload_bytes, RecordRef& ref) {
  DCHECK(!txn_.is_serializable() && payload_bytes <= MasterTree::kMaxPayloadBytes);
  Location location;
  // The commit compares the record with the snapshot that this transaction reads. So an upsert also
  // needs the record (R18).
  const Status status =
      reserve(txn_, handle_.control(), key, payload_bytes, Reservation::dependent, location);
  if (status == Status::ok) ref = make_ref(txn_.worker(), location.record, key);
  return status;
}

/// Plans a write of the whole record.
Status SnapshotTreeAccess::plan(Bytes key, Bytes payload) {
  RecordRef ref;
  const Status status = find_place(key, static_cast<uint32_t>(payload.size()), ref);
  return status == Status::ok ? txn_.write_insert(ref, key, payload) : status;
}

Status SnapshotTreeAccess::insert(Bytes key, Bytes payload) {
  TreeRead request{};
  const Status status = read_for_write(key, request);
  if (status == Status::ok) return Status::already_exists;
  return status == Status::not_found ? plan(key, payload) : status;
}

Status SnapshotTreeAccess::upsert(Bytes key, Bytes payload) {
  const Status status = handle_.check_snapshot(txn_, true);
  return status == Status::ok ? plan(key, payload) : status;
}

Status SnapshotTreeAccess::update(Bytes key, Bytes payload) {
  TreeRead request{};
  const Status status = read_for_write(key, request);
  return status == Status::ok ? plan(key, payload) : status;
}

Status SnapshotTreeAccess::update_range(Bytes key, uint32_t offset, Bytes bytes) {
  Whole record;
  const Status status = read_whole(key, record);
  if (status != Status::ok) return status;
  if (offset + bytes.size() > record.count) return Status::out_of_range;
  if (!bytes.empty()) std::memcpy(record.bytes.data() + offset, bytes.data(), bytes.size());
  return plan(key, Bytes(record.bytes).first(record.count));
}

Status SnapshotTreeAccess::increment(Bytes key, uint32_t offset, IncrementType type,
                                     const void* delta) {
  const uint32_t bytes = increment_bytes(type);
  if (bytes == 0) return Status::invalid_argument;
  Whole record;
  const Status status = read_whole(key, record);
  if (status != Status::ok) return status;
  if (offset + uint64_t{bytes} > record.count) return Status::out_of_range;
  std::byte* value = record.bytes.data() + offset;
  add_increment(type, value, delta, value);
  return plan(key, Bytes(record.bytes).first(record.count));
}

Status SnapshotTreeAccess::erase(Bytes key) {
  TreeRead request{};
  Status status = read_for_write(key, request);
  if (status != Status::ok) return status;
  RecordRef ref;
  status = find_place(key, 0, ref);
  return status == Status::ok ? txn_.write_erase(ref, key) : status;
}

}  // namespace atolldb
