// The write side of a transaction: planning and merging writes (R14, R33). Each record has at most
// one write-set entry and one log record, however often the transaction writes it.
#include <algorithm>
#include <cstring>

#include "engine/format/tree_record.h"
#include "engine/transaction/optimistic_read.h"
#include "engine/transaction/storage_ops.h"
#include "engine/transaction/transaction.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

namespace {

/// Returns true if the payload of a tree record has at least `payload_end` bytes. The caller must
/// compare the VID afterwards, because a write changes VID and length together.
bool is_at_least(const RecordHead& record, uint32_t payload_end) {
  if (fault::forget_increment_length) return true;
  const auto& tree_record = reinterpret_cast<const TreeRecord&>(record);
  return tree_record.payload_bytes.load(std::memory_order_acquire) >= payload_end;
}

}  // namespace

Status Transaction::verify_planned_writes() {
  DCHECK(snapshot_ == nullptr);
  for (uint32_t i = 0; i < writes_size_; ++i) {
    const WriteEntry& entry = writes_[i];
    auto* record = reinterpret_cast<RecordHead*>(worker_->view().resolve(entry.record));
    uint16_t payload_at = 0;
    if (record->load_acquire().is_relocated()) {
      // If the search finds no record, the record was dropped with its page or elided. Reads and
      // scans since then have missed this write (R14).
      const bool is_found = ops_of(record).track_moved(*worker_, record, payload_at);
      const bool is_lost = !is_found || record->load_acquire().is_relocated();
      if (is_lost && !fault::forget_lost_writes) return Status::read_conflict;
    }
    if (entry.increment == 0 || is_array_write(entry)) continue;
    const Vid now = record->load_acquire();
    if (now.is_deleted() || !now.is_in_place() || now.is_next_layer()) return Status::read_conflict;
    const LogRecord& log = log_of(entry);
    const bool fits = is_at_least(*record, uint32_t{log.payload_offset} + log.payload_bytes);
    if (!fits || record->load_acquire() != now) return Status::read_conflict;
    const Status status = register_read(record, now);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

WriteEntry* Transaction::find_write_slow(const RecordRef& ref, std::span<const std::byte> key) {
  const uint32_t found = write_index_.find(ref.identity, [&](uint32_t i) {
    const WriteEntry& entry = writes_[i];
    const LogRecord& log = log_of(entry);
    if (log.storage_id != ref.storage_id) return false;
    return is_array_write(entry) || std::ranges::equal(log.key_span(), key);
  });
  DCHECK(found == WriteIndex::kNone || found < writes_size_);
  return found == WriteIndex::kNone ? nullptr : &writes_[found];
}

/// Updates a ref whose record has moved. Returns false if the record no longer exists, or was
/// created again with a capacity of less than `payload_end` bytes.
bool Transaction::follow(RecordRef& ref, uint32_t payload_end) {
  if (worker_->cluster_failed()) return false;
  const RecordHead* before = ref.record;
  if (!ops_of(ref.record).track_moved(*worker_, ref.record, ref.payload_at)) return false;
  // If track_moved returns the same address, the page is not marked as moved yet. Waits until the
  // thread that moves the record has marked the page (R7).
  if (ref.record == before && await_move(*worker_, page_of(before)) != Status::ok) return false;
  return reinterpret_cast<const TreeRecord*>(ref.record)->capacity >= payload_end;
}

/// Returns true if the record has room for `payload_end` bytes. Since the caller planned to use
/// them, a tree record may have been elided and created again with less room.
bool Transaction::has_room_for(const RecordRef& ref, uint32_t payload_end) {
  return ref.payload_at == kArrayPayloadAt ||
         reinterpret_cast<const TreeRecord*>(ref.record)->capacity >= payload_end;
}

Status Transaction::read_where_it_is(RecordRef ref, std::span<const std::byte> key, uint32_t offset,
                                     uint32_t count, void* out) {
  if (!has_room_for(ref, offset + count)) return Status::write_conflict;
  for (;;) {
    Vid seen;
    const Status status = read(ref, offset, count, out, seen, key);
    if (status != Status::ok || !seen.is_relocated()) return status;
    if (!follow(ref, offset + count)) return Status::write_conflict;
  }
}

bool Transaction::has_write_at(UniversalName name) const {
  return std::any_of(writes_, writes_ + writes_size_,
                     [&](const WriteEntry& entry) { return entry.record == name; });
}

bool Transaction::has_write_to(uint32_t storage_id, std::span<const std::byte> key_end) {
  return std::any_of(writes_, writes_ + writes_size_, [&](const WriteEntry& entry) {
    if (is_array_write(entry)) return false;
    const LogRecord& log = log_of(entry);
    if (log.storage_id != storage_id || log.key_bytes < key_end.size()) return false;
    return std::ranges::equal(log.key_span().last(key_end.size()), key_end);
  });
}

LogRecord* Transaction::allocate_log(uint32_t storage_id, std::span<const std::byte> key,
                                     uint32_t payload_bytes) {
  const uint32_t length = LogRecord::bytes(static_cast<uint32_t>(key.size()), payload_bytes);
  DCHECK(key.size() <= UINT16_MAX && payload_bytes <= UINT16_MAX);
  LogRecord* log = log_.allocate(length);
  if (log == nullptr) return nullptr;
  log->type = LogType::filler;
  log->number = 0;
  log->key_bytes = static_cast<uint16_t>(key.size());
  log->length = length;
  log->storage_id = storage_id;
  log->payload_offset = 0;
  log->payload_bytes = static_cast<uint16_t>(payload_bytes);
  log->vid = 0;
  copy_bytes(log->key(), key.data(), key.size());
  return log;
}

Status Transaction::add_write(const RecordRef& ref, LogRecord* log, LogType type,
                              IncrementType increment) {
  DCHECK(is_active() && log->type == LogType::filler);
  DCHECK(ref.name() == worker_->name_of(ref.record));
  if (writes_size_ == limits_.write_set) return fail(Status::transaction_too_large);
  log->type = type;
  write_index_.insert(ref.identity, writes_size_);
  WriteEntry& entry = writes_[writes_size_++];
  entry.record = ref.name();
  entry.log_offset = log_.offset_of(log);
  entry.payload_at = ref.payload_at;
  entry.increment = static_cast<uint8_t>(increment);
  entry.spare = 0;
  const auto bit = static_cast<uint32_t>(ref.identity >> 56);
  filter_[bit >> 6] |= uint64_t{1} << (bit & 63);
  return Status::ok;
}

Status Transaction::write_insert(const RecordRef& ref, std::span<const std::byte> key,
                                 std::span<const std::byte> payload) {
  ++plan_changes_;
  LogRecord* log = allocate_log(ref.storage_id, key, static_cast<uint32_t>(payload.size()));
  if (log == nullptr) return no_log_room();
  copy_bytes(log->payload(), payload.data(), payload.size());
  WriteEntry* own = find_write(ref, key);
  if (own == nullptr) return add_write(ref, log, LogType::insert, IncrementType::none);
  // A caller that finds a pending increment replaces it by an update and a read (R33). If one is
  // still pending, the caller did not find it: the record was elided and created again.
  if (own->increment != 0 && !fault::forget_own_increment) return Status::write_conflict;
  DCHECK(!is_array_write(*own));
  if (log_of(*own).type == LogType::add) --add_count_;
  log_of(*own).type = LogType::filler;
  log->type = LogType::insert;
  own->log_offset = log_.offset_of(log);
  own->increment = 0;
  return Status::ok;
}

Status Transaction::write_update(const RecordRef& ref, std::span<const std::byte> key,
                                 uint32_t offset, std::span<const std::byte> bytes,
                                 uint32_t record_bytes) {
  DCHECK(record_bytes == 0 || ref.payload_at != kArrayPayloadAt);
  DCHECK(record_bytes == 0 || offset + bytes.size() <= record_bytes);
  ++plan_changes_;
  if (WriteEntry* own = find_write(ref, key)) return merge_update(ref, key, *own, offset, bytes);
  if (is_logged_whole(offset, bytes.size(), record_bytes))
    return write_whole(ref, key, offset, bytes, record_bytes);
  LogRecord* log = allocate_log(ref.storage_id, key, static_cast<uint32_t>(bytes.size()));
  if (log == nullptr) return no_log_room();
  log->payload_offset = static_cast<uint16_t>(offset);
  copy_bytes(log->payload(), bytes.data(), bytes.size());
  return add_write(ref, log, LogType::update, IncrementType::none);
}

bool Transaction::is_logged_whole(uint32_t offset, size_t bytes, uint32_t record_bytes) const {
  if (record_bytes == 0) return false;
  return bytes == record_bytes || record_bytes <= worker_->whole_version_bytes() ||
         (fault::updates_at_start_are_whole && offset == 0);
}

/// Plans an update as an insert of the whole record (R107).
Status Transaction::write_whole(const RecordRef& ref, std::span<const std::byte> key,
                                uint32_t offset, std::span<const std::byte> bytes,
                                uint32_t record_bytes) {
  if (fault::updates_at_start_are_whole) record_bytes = static_cast<uint32_t>(bytes.size());
  LogRecord* log = allocate_log(ref.storage_id, key, record_bytes);
  if (log == nullptr) return no_log_room();
  if (bytes.size() != record_bytes) {
    // The read is registered, so the commit verifies the bytes around those of the update.
    const Status status = read_where_it_is(ref, key, 0, record_bytes, log->payload());
    if (status != Status::ok) return status;
  }
  copy_bytes(log->payload() + offset, bytes.data(), bytes.size());
  return add_write(ref, log, LogType::insert, IncrementType::none);
}

Status Transaction::merge_update(const RecordRef& ref, std::span<const std::byte> key,
                                 WriteEntry& entry, uint32_t offset,
                                 std::span<const std::byte> bytes) {
  if (entry.increment != 0) {
    const Status status = materialize_increment(ref, entry);
    if (status != Status::ok) return status;
  }
  DCHECK(entry.increment == 0);
  LogRecord& old = log_of(entry);
  if (old.type == LogType::erase) return Status::not_found;
  const auto count = static_cast<uint32_t>(bytes.size());
  const uint32_t low = std::min<uint32_t>(offset, old.payload_offset);
  const uint32_t high = std::max<uint32_t>(offset + count, old.payload_offset + old.payload_bytes);
  if (low == old.payload_offset && high - low == old.payload_bytes) {
    copy_bytes(old.payload() + (offset - low), bytes.data(), count);
    return Status::ok;
  }
  if (old.type == LogType::insert) return Status::out_of_range;
  // The new log record has the union of both ranges. Bytes between the ranges are read from the
  // record, and the read is registered, so the commit verifies them.
  LogRecord* log = allocate_log(ref.storage_id, key, high - low);
  if (log == nullptr) return no_log_room();
  log->payload_offset = static_cast<uint16_t>(low);
  if (high - low > count + old.payload_bytes) {
    const Status status = read_where_it_is(ref, key, low, high - low, log->payload());
    if (status != Status::ok) return status;
  }
  LogRecord& before = log_of(entry);
  DCHECK(before.type == LogType::update && low <= before.payload_offset);
  copy_bytes(log->payload() + (before.payload_offset - low), before.payload(),
             before.payload_bytes);
  copy_bytes(log->payload() + (offset - low), bytes.data(), count);
  before.type = LogType::filler;
  log->type = LogType::update;
  entry.log_offset = log_.offset_of(log);
  return Status::ok;
}

Status Transaction::write_erase(const RecordRef& ref, std::span<const std::byte> key) {
  ++plan_changes_;
  erases_ = true;
  if (WriteEntry* own = find_write(ref, key)) {
    if (own->increment != 0) {
      // The result of the increment depends on the record's length, which the erase removes (R33).
      const Status status = materialize_increment(ref, *own);
      if (status != Status::ok) return status;
    }
    LogRecord& log = log_of(*own);
    if (log.type == LogType::erase) return Status::not_found;
    // Turns the planned write into an erase. An erase has no payload, so the payload bytes of the
    // log record stay unused.
    log.type = LogType::erase;
    log.payload_offset = 0;
    log.payload_bytes = 0;
    own->increment = 0;
    return Status::ok;
  }
  LogRecord* log = allocate_log(ref.storage_id, key, 0);
  if (log == nullptr) return no_log_room();
  return add_write(ref, log, LogType::erase, IncrementType::none);
}

Status Transaction::write_increment(const RecordRef& ref, std::span<const std::byte> key,
                                    uint32_t offset, IncrementType type, const void* delta) {
  ++plan_changes_;
  const uint32_t bytes = increment_bytes(type);
  if (bytes == 0) return Status::invalid_argument;
  if (WriteEntry* own = find_write(ref, key)) {
    LogRecord& log = log_of(*own);
    if (own->increment == static_cast<uint8_t>(type) && log.payload_offset == offset) {
      add_increment(type, log.payload(), delta, log.payload());
      return Status::ok;
    }
    std::byte value[8];
    const Status status = read_where_it_is(ref, key, offset, bytes, value);
    if (status != Status::ok) return status;
    add_increment(type, value, delta, value);
    return merge_update(ref, key, *own, offset, {value, bytes});
  }
  if (fault::increment_before_lock) {
    std::byte sum[8];
    add_increment(type, ref.payload() + offset, delta, sum);
    return write_update(ref, key, offset, {sum, bytes});
  }
  LogRecord* log = allocate_log(ref.storage_id, key, bytes);
  if (log == nullptr) return no_log_room();
  log->payload_offset = static_cast<uint16_t>(offset);
  copy_bytes(log->payload(), delta, bytes);
  return add_write(ref, log, LogType::update, type);
}

Status Transaction::write_add(const RecordRef& ref, std::span<const std::byte> key, uint32_t offset,
                              IncrementType type, const void* delta) {
  ++plan_changes_;
  const uint32_t bytes = increment_bytes(type);
  if (bytes == 0) return Status::invalid_argument;
  if (find_write(ref, key) != nullptr) return miss_own_write();
  LogRecord* log = allocate_log(ref.storage_id, key, bytes);
  if (log == nullptr) return no_log_room();
  log->payload_offset = static_cast<uint16_t>(offset);
  log->number = static_cast<uint8_t>(type);
  copy_bytes(log->payload(), delta, bytes);
  ++add_count_;
  return add_write(ref, log, LogType::add, IncrementType::none);
}

bool Transaction::add_to_own(WriteEntry& own, uint32_t offset, IncrementType type,
                             const void* delta) {
  LogRecord& log = log_of(own);
  DCHECK(log.type == LogType::add && own.increment == 0);
  if (log.payload_offset != offset || log.number != static_cast<uint8_t>(type)) return false;
  ++plan_changes_;
  add_increment(type, log.payload(), delta, log.payload());
  return true;
}

Status Transaction::materialize_increment(RecordRef ref, WriteEntry& entry, const Vid* expected) {
  LogRecord& log = log_of(entry);
  const uint32_t end = uint32_t{log.payload_offset} + log.payload_bytes;
  std::byte value[8];
  DCHECK(entry.increment != 0 && log.type == LogType::update);
  DCHECK(log.payload_bytes <= sizeof(value));
  Vid seen;
  bool is_long_enough = false;
  for (;;) {
    const Status status = read_stable(*worker_, *ref.record, seen, [&](Vid) {
      is_long_enough = is_array_write(entry) || is_at_least(*ref.record, end);
      if (!is_long_enough) return;
      racy_read(value, ref.payload() + log.payload_offset,
                std::min<size_t>(log.payload_bytes, sizeof(value)));
    });
    if (status != Status::ok) return status;
    if (!seen.is_relocated()) break;
    if (!follow(ref, end)) return Status::write_conflict;
  }
  if (seen.is_deleted()) return Status::not_found;
  // The increment was planned when the record was long enough, so the record has changed (R33).
  if (!is_long_enough) return Status::write_conflict;
  if (expected != nullptr && seen != *expected) return Status::read_conflict;
  add_increment(static_cast<IncrementType>(entry.increment), value, log.payload(), log.payload());
  entry.increment = 0;
  return register_read(ref.record, seen);
}

Status Transaction::overlay(const RecordRef& ref, WriteEntry& entry, Vid seen, uint32_t offset,
                            uint32_t count, void* out) {
  // A planned update or increment needs an existing record, because it changes a part of the
  // payload. A planned insert has the whole payload. Callers have handled a planned erase.
  if (seen.is_deleted() && log_of(entry).type != LogType::insert) return Status::write_conflict;
  if (entry.increment != 0) {
    const Status status = materialize_increment(ref, entry, &seen);
    if (status != Status::ok) return status;
  }
  const LogRecord& log = log_of(entry);
  DCHECK(log.type != LogType::erase && log.type != LogType::filler);
  const uint32_t low = std::max<uint32_t>(offset, log.payload_offset);
  const uint32_t high =
      std::min<uint32_t>(offset + count, uint32_t{log.payload_offset} + log.payload_bytes);
  if (low < high) {
    copy_bytes(static_cast<std::byte*>(out) + (low - offset),
               log.payload() + (low - log.payload_offset), high - low);
  }
  return Status::ok;
}

Status Transaction::write_append(StorageControl* storage, std::span<const std::byte> payload) {
  LogRecord* log = allocate_log(storage->id, {}, static_cast<uint32_t>(payload.size()));
  if (log == nullptr) return no_log_room();
  copy_bytes(log->payload(), payload.data(), payload.size());
  log->payload_offset = static_cast<uint16_t>(appends_.size());
  if (!appends_.push({storage->id, log_.offset_of(log)})) {
    return fail(Status::transaction_too_large);
  }
  log->type = LogType::append;
  return Status::ok;
}

bool Transaction::own_append(uint32_t storage_id, uint32_t& index,
                             std::span<const std::byte>& payload) {
  for (; index < appends_.size(); ++index) {
    if (appends_[index].storage_id != storage_id) continue;
    const auto& log = log_.at(appends_[index].log_offset);
    DCHECK(log.type == LogType::append);
    payload = {log.payload(), log.payload_bytes};
    ++index;
    return true;
  }
  return false;
}

}  // namespace atolldb
