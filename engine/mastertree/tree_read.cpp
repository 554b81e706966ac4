#include "engine/mastertree/tree_access.h"

#include <algorithm>
#include <cstring>

#include "engine/mastertree/prefetch.h"
#include "engine/transaction/optimistic_read.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

namespace {

/// Prefetches the part of a record that is read. The copy computes the address of its last bytes
/// from the length in the record's first line. Without this, a line that only these bytes touch is
/// loaded after the first line has arrived. For the same reason it does not load the length of the
/// record, or the place of its payload. It takes the storage's typical length, and the place in the
/// first layer.
void prefetch_part(const TreeRecord* record, uint32_t key_bytes, uint32_t typical_bytes,
                   const TreeRead& request) {
  constexpr uint32_t kMostBytes = 4 * kLineBytes;  // longer copies load many lines at once
  constexpr auto kMostOffset = static_cast<uint32_t>(kPageBytes);  // others are out of range
  const uint32_t offset = std::min(request.offset, kMostOffset);
  const auto* begin =
      reinterpret_cast<const std::byte*>(record) + TreeRecord::payload_at_for(key_bytes) + offset;
  uint32_t bytes = std::min(request.count, kMostBytes);
  if (typical_bytes != 0) bytes = std::min(bytes, typical_bytes - std::min(offset, typical_bytes));
  prefetch_lines(begin, begin + bytes);
  if (bytes != 0) __builtin_prefetch(begin + bytes - 1);
}

}  // namespace

Status read_own_insert(const LogRecord& log, TreeRead& request) {
  DCHECK(log.type == LogType::insert && log.payload_offset == 0);
  request.payload_bytes = log.payload_bytes;
  if (request.exact && request.offset + uint64_t{request.count} > log.payload_bytes) {
    return Status::out_of_range;
  }
  if (request.offset < log.payload_bytes) {
    const uint32_t count = std::min<uint32_t>(request.count, log.payload_bytes - request.offset);
    if (count != 0) std::memcpy(request.out, log.payload() + request.offset, count);
  }
  return Status::ok;
}

Status read_tree_record(Transaction& txn, RecordRef& ref, std::span<const std::byte> key,
                        TreeRead& request) {
  const auto* record = reinterpret_cast<const TreeRecord*>(ref.record);
  const StorageControl& storage = txn.worker().view().control->storage(ref.storage_id);
  prefetch_part(record, static_cast<uint32_t>(key.size()), storage.payload_bytes, request);
  uint32_t length = 0;
  uint32_t copied = 0;
  Status status = read_stable(txn.worker(), *ref.record, request.seen, [&](Vid vid) {
    // If another worker is writing, the length may be wrong, and is discarded with the copy. It
    // never exceeds the capacity.
    length = record->payload_bytes.load(std::memory_order_acquire);
    copied = request.offset < length ? std::min(request.count, length - request.offset) : 0;
    if (!vid.is_deleted() && copied != 0) {
      racy_read(request.out, ref.payload() + request.offset, copied);
    }
  });
  if (status != Status::ok || request.seen.is_relocated()) return status;
  DCHECK(length <= record->capacity && copied <= request.count);
  status = txn.register_read(ref.record, request.seen);
  if (status != Status::ok) return status;
  WriteEntry* own = txn.own_write(ref, key);
  if (own != nullptr && txn.log_of(*own).type == LogType::insert) {
    status = read_own_insert(txn.log_of(*own), request);
    ref.payload_bytes = static_cast<uint16_t>(request.payload_bytes);
    return status;
  }
  if (own != nullptr ? txn.log_of(*own).type == LogType::erase : request.seen.is_deleted()) {
    return Status::not_found;
  }
  request.payload_bytes = length;
  ref.payload_bytes = static_cast<uint16_t>(length);
  if (request.exact && copied < request.count) return Status::out_of_range;
  return own == nullptr ? Status::ok
                        : txn.overlay(ref, *own, request.seen, request.offset, copied, request.out);
}

}  // namespace atolldb
