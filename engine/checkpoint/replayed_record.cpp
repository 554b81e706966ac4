#include "engine/checkpoint/replayed_record.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "engine/array/array.h"
#include "engine/format/tree_record.h"
#include "engine/hooks/mutants.h"
#include "engine/mastertree/mastertree.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/tree_access.h"
#include "engine/transaction/optimistic_read.h"
#include "engine/transaction/run.h"
#include "shared/base/check.h"
#include "shared/sync/racy_copy.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Returns whether the record is at least as new as `version`. A reserved record is no version.
bool is_as_new(Vid vid, uint64_t version) {
  if (fault::replay_last_wins) return false;
  return vid.ordinal() != 0 && vid.version() >= version;
}

uint64_t array_index_of(Bytes key) {
  uint64_t index = 0;
  CHECK(key.size() == sizeof index);
  std::memcpy(&index, key.data(), sizeof index);
  return index;
}

/// Returns the VID of a whole version without flags.
Vid whole_version(const LogRecord& record) { return Vid(Vid(record.vid).version()); }

}  // namespace

std::unexpected<Error> replay_failed(uint32_t storage_id, Status status) {
  CHECK(status != Status::ok && storage_id != 0);
  const char* advice =
      status == Status::volatile_pool_exhausted
          ? ": all data must fit into the memory of the nodes: raise memory.volatile_pool"
          : "";
  return make_error(ExitCode::failed, fmt::format("replay of storage {} failed: {}{}", storage_id,
                                                  to_string(status), advice));
}

Status RecordWriter::begin() {
  if (uses_ != 0 && uses_ < kRecordsPerTransaction) {
    ++uses_;
    return Status::ok;
  }
  end();
  uses_ = 1;
  return txn_->begin(kMaxEpoch);
}

void RecordWriter::end() {
  if (uses_ == 0) return;
  txn_->discard();
  uses_ = 0;
  // Packs the pages of hash storages that were divided (R101).
  WorkerContext& worker = txn_->worker();
  if (worker.hints().is_due(worker.current_epoch())) run_hints(worker);
}

Status RecordWriter::put(StorageControl& storage, Bytes key, Vid vid, Bytes payload,
                         Replayed& result) {
  DCHECK(is_tree(storage.type) && payload.size() <= MasterTree::kMaxPayloadBytes);
  return store(storage, key, Vid(vid.version()), payload, result);
}

Status RecordWriter::put_tombstone(StorageControl& storage, Bytes key, Vid vid, Replayed& result) {
  DCHECK(is_tree(storage.type));
  return store(storage, key, Vid(vid.version()).with(Vid::kDeleted), {}, result);
}

Status RecordWriter::put(StorageControl& storage, uint64_t index, Vid vid, Bytes payload,
                         Replayed& result) {
  DCHECK(storage.type == StorageType::array && payload.size() == storage.payload_bytes);
  return store(storage, array_key(index), Vid(vid.version()), payload, result);
}

Status RecordWriter::store(StorageControl& storage, Bytes key, Vid vid, Bytes payload,
                           Replayed& result) {
  DCHECK(vid.ordinal() != 0);
  for (;;) {
    Status status = begin();
    if (status != Status::ok) return status;
    Place place;
    bool is_older = false;
    const bool adds = !vid.is_deleted() || !fault::replay_drops_tombstones;
    status = find(storage, key, static_cast<uint32_t>(payload.size()), vid.version(), adds, place,
                  is_older);
    if (status != Status::ok) {
      end();  // the transaction may be unusable now
      return status;
    }
    if (is_older || place.head == nullptr) {
      result = Replayed::older;
      return Status::ok;
    }
    bool is_moved = false;
    status = store_at(place, vid, payload, result, is_moved);
    if (status != Status::ok || !is_moved) return status;
  }
}

Status RecordWriter::find(StorageControl& storage, Bytes key, uint32_t payload_bytes,
                          uint64_t version, bool adds, Place& place, bool& is_older) {
  return storage.type == StorageType::array
             ? find_in_array(storage, key, place)
             : find_in_tree(storage, key, payload_bytes, version, adds, place, is_older);
}

Status RecordWriter::find_in_array(StorageControl& storage, Bytes key, Place& place) {
  const std::array<uint64_t, 1> index = {array_index_of(key)};
  std::array<RecordRef, 1> ref;
  const Array array(storage);
  CHECK(index[0] < array.record_count());
  const Status status = array.find_many_for_update(*txn_, index, ref);
  if (status != Status::ok) return status;
  DCHECK(ref[0].payload_bytes == storage.payload_bytes);
  place = {ref[0].record, ref[0].payload_at, storage.payload_bytes, false};
  DCHECK(place.head != nullptr);
  return Status::ok;
}

Status RecordWriter::find_in_tree(StorageControl& storage, Bytes key, uint32_t payload_bytes,
                                  uint64_t version, bool adds, Place& place, bool& is_older) {
  WorkerContext& worker = txn_->worker();
  DCHECK(key.size() <= kMaxTreeKeyBytes);
  Location at = locate(worker, storage, key);
  if (worker.cluster_failed()) return Status::cluster_failed;
  if (at.record != nullptr) {
    const Vid seen = at.record->head.load_acquire();
    // Most records of an older log file end here, without a lock.
    is_older = seen.is_in_place() && is_as_new(seen, version);
    if (is_older) return Status::ok;
  }
  if (at.record == nullptr && !adds) return Status::ok;
  if (at.record == nullptr || at.record->capacity < payload_bytes) {
    const Status status = reserve(*txn_, storage, key, payload_bytes, Reservation::dependent, at);
    if (status != Status::ok) return status;
  }
  DCHECK(at.page != nullptr && at.record->capacity >= payload_bytes);
  place = {&at.record->head, at.record->payload_at(), at.record->capacity, true};
  return Status::ok;
}

Status RecordWriter::store_at(const Place& place, Vid vid, Bytes payload, Replayed& result,
                              bool& is_moved) {
  WorkerContext& worker = txn_->worker();
  ScopedLock lock;
  if (!lock.lock(worker, place.head->lock, worker.name_of(place.head))) {
    return Status::cluster_failed;
  }
  const Vid found(place.head->vid.load(std::memory_order_relaxed));
  DCHECK(!found.is_being_written());
  is_moved = found.is_relocated();
  if (is_moved) return Status::ok;
  if (is_as_new(found, vid.version())) {
    result = Replayed::older;
    return Status::ok;
  }
  result = found.ordinal() == 0 ? Replayed::inserted : Replayed::overwritten;
  if (vid.is_deleted()) {
    place.head->vid.store(vid.word(), std::memory_order_release);
    return Status::ok;
  }
  CHECK(payload.size() <= place.capacity);
  place.head->vid.store(found.with(Vid::kBeingWritten).word(), std::memory_order_relaxed);
  if (place.is_tree) set_payload_bytes(*place.head, static_cast<uint16_t>(payload.size()));
  racy_write(reinterpret_cast<std::byte*>(place.head) + place.payload_at, payload.data(),
             payload.size());
  // Release: a reader that sees the new VID sees the new payload.
  place.head->vid.store(vid.word(), std::memory_order_release);
  return Status::ok;
}

Status RecordWriter::put_run(StorageControl& storage, std::span<const LogRecord* const> records,
                             std::span<std::optional<Replayed>> results, size_t& done) {
  CHECK(!records.empty() && records.size() <= kBatch && results.size() >= records.size());
  done = 0;
  std::array<Bytes, kBatch> keys;
  std::array<Bytes, kBatch> payloads;
  std::array<TreeRecord*, kBatch> reserved;
  for (size_t i = 0; i < records.size(); ++i) {
    DCHECK(records[i]->type == LogType::insert && records[i]->storage_id == storage.id);
    keys[i] = records[i]->key_span();
    payloads[i] = {records[i]->payload(), records[i]->payload_bytes};
  }
  Status status = begin();
  if (status != Status::ok) return status;
  uint32_t count = 0;
  Vid reservation;
  status = reserve_run(*txn_, storage, std::span(keys).first(records.size()), payloads, reserved,
                       count, reservation);
  if (status != Status::ok) {
    end();  // the transaction may be unusable now
    return status;
  }
  for (size_t i = 0; i < count && status == Status::ok; ++i) {
    TreeRecord* record = reserved[i];
    const Place place = {&record->head, record->payload_at(), record->capacity, true};
    Replayed result = Replayed::older;
    bool is_moved = false;
    status = store_at(place, whole_version(*records[i]), payloads[i], result, is_moved);
    // Another thread may have divided the page since.
    results[i] = is_moved ? std::nullopt : std::optional(result);
  }
  done = count;
  return status;
}

void RecordWriter::prefetch(std::span<const Sought> records) {
  CHECK(records.size() <= kBatch);
  std::array<bool, kBatch> is_done{};
  for (size_t first = 0; first < records.size(); ++first) {
    if (is_done[first]) continue;
    StorageControl* const storage = records[first].storage;
    std::array<Bytes, kBatch> keys;
    size_t count = 0;
    for (size_t i = first; i < records.size(); ++i) {
      if (records[i].storage != storage) continue;
      is_done[i] = true;
      keys[count++] = records[i].key;
    }
    DCHECK(storage != nullptr && count != 0);
    prefetch_in(*storage, std::span(keys).first(count));
  }
}

void RecordWriter::prefetch_in(StorageControl& storage, std::span<const Bytes> keys) {
  if (begin() != Status::ok) return;
  if (is_tree(storage.type)) return MasterTree(storage).prefetch(*txn_, keys);
  CHECK(storage.type == StorageType::array);
  std::array<uint64_t, kBatch> indexes;
  for (size_t i = 0; i < keys.size(); ++i) indexes[i] = array_index_of(keys[i]);
  Array(storage).prefetch(*txn_, std::span(indexes).first(keys.size()), 0, storage.payload_bytes);
}

uint64_t RecordWriter::version_of(StorageControl& storage, Bytes key) {
  uint32_t turns = 0;
  while (!txn_->worker().cluster_failed()) {
    if (begin() != Status::ok) return 0;
    Place place;
    bool is_older = false;
    if (find(storage, key, 0, ~uint64_t{0}, false, place, is_older) != Status::ok) return 0;
    if (place.head == nullptr) return 0;
    const Vid vid = place.head->load_acquire();
    // Another thread, also of another process, has moved the record since, or writes it now.
    if (vid.is_relocated() || !vid.is_in_place()) {
      spin_or_yield(turns);
      continue;
    }
    return vid.ordinal() != 0 ? vid.version() : 0;
  }
  return 0;
}

Status RecordWriter::change(StorageControl& storage, Bytes key, const Change& apply, bool& exists,
                            Vid& vid) {
  WorkerContext& worker = txn_->worker();
  for (;;) {
    Status status = begin();
    if (status != Status::ok) return status;
    Place place;
    bool is_older = false;
    exists = false;
    vid = {};
    status = find(storage, key, 0, ~uint64_t{0}, false, place, is_older);
    if (status != Status::ok || place.head == nullptr) return status;
    ScopedLock lock;
    if (!lock.lock(worker, place.head->lock, worker.name_of(place.head))) {
      return Status::cluster_failed;
    }
    vid = Vid(place.head->vid.load(std::memory_order_relaxed));
    if (vid.is_relocated()) continue;
    exists = !vid.is_deleted();
    if (!exists) return Status::ok;
    auto* payload = reinterpret_cast<std::byte*>(place.head) + place.payload_at;
    const uint32_t bytes = place.is_tree ? reinterpret_cast<TreeRecord*>(place.head)
                                               ->payload_bytes.load(std::memory_order_relaxed)
                                         : place.capacity;
    std::array<std::byte, MasterTree::kMaxPayloadBytes> copy;
    CHECK(bytes <= copy.size());
    std::memcpy(copy.data(), payload, bytes);
    const Vid changed = apply(Vid(vid.version()), std::span(copy).first(bytes));
    CHECK(changed.version() >= vid.version());
    place.head->vid.store(vid.with(Vid::kBeingWritten).word(), std::memory_order_relaxed);
    racy_write(payload, copy.data(), bytes);
    place.head->vid.store(changed.word(), std::memory_order_release);
    return Status::ok;
  }
}

}  // namespace atolldb
