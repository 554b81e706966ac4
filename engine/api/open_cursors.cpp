#include "engine/api/open_cursors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "engine/api/node_call.h"
#include "engine/api/storage_cast.h"
#include "engine/hash/hash_key.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {
namespace {

using ApiRange = atoll_api::abi::ScanRange;
using ApiRow = atoll_api::abi::ScanRow;
using ApiRows = atoll_api::abi::ScanRows;

/// The low bits of a cursor's number are its slot.
constexpr uint32_t kSlotBits = 8;
constexpr uint64_t kSlotMask = (uint64_t{1} << kSlotBits) - 1;
static_assert(atoll_api::kMaxOpenCursors <= kSlotMask + 1);

}  // namespace

Status OpenCursors::open(Transaction& txn, const ApiHandle& storage, const ApiRange& range,
                         uint64_t& cursor) {
  CHECK(storage.type != ApiStorageType::none);
  if (range.low.size() > atoll_api::kMaxKeyBytes || range.high.size() > atoll_api::kMaxKeyBytes) {
    return Status::key_too_long;
  }
  const bool is_hash = storage.type == ApiStorageType::hash;
  if (is_hash && (range.has_low || range.has_high || !range.forward)) {
    return Status::operation_not_supported;
  }
  const auto is_free = [](const auto& slot) { return slot == nullptr || slot->number == 0; };
  const auto place = std::ranges::find_if(cursors_, is_free);
  if (place == cursors_.end()) return Status::transaction_too_large;
  if (*place == nullptr) *place = std::make_unique<OpenCursor>();
  OpenCursor& opened = **place;
  opened.start(txn, storage, range);
  CHECK(opened_ < UINT64_MAX >> kSlotBits);
  opened.number = ++opened_ << kSlotBits | static_cast<uint64_t>(place - cursors_.begin());
  cursor = opened.number;
  return Status::ok;
}

void OpenCursors::OpenCursor::start(Transaction& txn, const ApiHandle& storage,
                                    const ApiRange& range) {
  CHECK(number == 0 && std::holds_alternative<std::monostate>(cursor));
  keys_only = range.keys_only;
  is_hash = storage.type == ApiStorageType::hash;
  has_row = false;
  array_payload_bytes = storage.payload_bytes;
  if (storage.type == ApiStorageType::array) {
    cursor.emplace<ArrayCursor>(storage_in<Array>(storage), txn, range.first, range.last,
                                range.forward);
  } else if (storage.type == ApiStorageType::sequential) {
    cursor.emplace<SequentialCursor>(storage_in<Sequential>(storage), txn, range.first,
                                     std::min(range.last, kMaxEpoch));
  } else {
    low.assign(range.low.begin(), range.low.end());
    high.assign(range.high.begin(), range.high.end());
    const ScanRange bounds{
        .low = low, .has_low = range.has_low, .high = high, .has_high = range.has_high};
    const MasterTree& tree = storage_in<MasterTree>(storage);
    storage_id = tree.handle().id();
    cursor.emplace<MasterTreeCursor>(tree, txn, bounds, range.forward);
  }
}

OpenCursors::OpenCursor* OpenCursors::find(uint64_t cursor) {
  const uint64_t slot = cursor & kSlotMask;
  if (cursor == 0 || slot >= cursors_.size() || cursors_[slot] == nullptr) return nullptr;
  return cursors_[slot]->number == cursor ? cursors_[slot].get() : nullptr;
}

Status OpenCursors::next(uint64_t cursor, ApiRow& row) {
  row.key_bytes = 0;
  row.value_bytes = 0;
  row.number = 0;
  OpenCursor* const open = find(cursor);
  if (open == nullptr) return Status::invalid_argument;
  const Status status = open->next(row);
  open->has_row = status == Status::ok;
  return status;
}

Status OpenCursors::next_many(uint64_t cursor, ApiRows& rows) {
  rows.count = 0;
  OpenCursor* const open = find(cursor);
  const bool fits_key = rows.keys == nullptr || rows.key_capacity >= atoll_api::kMaxKeyBytes;
  if (open == nullptr || rows.capacity == 0 || !fits_key) return Status::invalid_argument;
  open->has_row = false;
  auto* const tree = std::get_if<MasterTreeCursor>(&open->cursor);
  return tree != nullptr && !open->is_hash ? open->next_batch(*tree, rows) : open->next_each(rows);
}

Status OpenCursors::place_of(uint64_t cursor, ApiPlace& place) {
  OpenCursor* const open = find(cursor);
  if (open == nullptr || !open->has_row) return Status::invalid_argument;
  auto* const tree = std::get_if<MasterTreeCursor>(&open->cursor);
  return tree == nullptr ? Status::operation_not_supported : open->place_of(*tree, place);
}

Status OpenCursors::OpenCursor::place_of(MasterTreeCursor& tree, ApiPlace& place) const {
  RecordRef& ref = begin_place(place);
  ref = tree.ref();
  std::optional<OriginalKey> original;
  if (is_hash) original.emplace(tree.key());
  const uint32_t id = storage_id;
  end_place(place, ref, id, identity_of(id, original ? original->bytes() : tree.key()));
  return Status::ok;
}

Status OpenCursors::OpenCursor::next(ApiRow& row) {
  if (auto* tree = std::get_if<MasterTreeCursor>(&cursor)) return next(*tree, row);
  if (auto* array = std::get_if<ArrayCursor>(&cursor)) return next(*array, row);
  auto* const sequential = std::get_if<SequentialCursor>(&cursor);
  CHECK(sequential != nullptr);
  return next(*sequential, row);
}

Status OpenCursors::OpenCursor::next_batch(MasterTreeCursor& tree, ApiRows& rows) {
  const size_t wanted = std::min<size_t>(rows.capacity, found.size());
  const uint32_t stride = keys_only ? 0 : rows.value_stride;
  const std::span<std::byte> keys(rows.keys, rows.keys == nullptr ? 0 : rows.key_capacity);
  const ScanBatch batch{.rows = std::span(found).first(wanted),
                        .payloads = {rows.values, wanted * stride},
                        .stride = stride,
                        .keys = keys};
  const Status status = tree.next_many(batch, rows.count);
  for (uint32_t i = 0; i < rows.count; ++i) {
    atoll_api::abi::ScannedRow& row = rows.rows[i];
    row = {};
    row.key_at = keys.empty() ? 0 : static_cast<uint32_t>(found[i].key.data() - keys.data());
    row.key_bytes = static_cast<uint32_t>(found[i].key.size());
    row.value_bytes = keys_only ? 0 : found[i].payload_bytes;
  }
  return status;
}

/// Takes the rows one by one. Arrays and sequential storages have no batches, and the keys of hash
/// storages are not those that the tree stores.
Status OpenCursors::OpenCursor::next_each(ApiRows& rows) {
  std::array<std::byte, kMaxTreeKeyBytes> unwanted_key;
  uint32_t key_at = 0;
  while (rows.count < rows.capacity) {
    const bool wants_key = rows.keys != nullptr;
    // The next key may be one of the longest.
    if (wants_key && rows.key_capacity - key_at < atoll_api::kMaxKeyBytes) break;
    ApiRow row;
    row.key = wants_key ? rows.keys + key_at : unwanted_key.data();
    row.value = rows.values + size_t{rows.count} * rows.value_stride;
    row.value_capacity = rows.value_stride;
    const Status status = next(row);
    if (status == Status::end_of_scan && rows.count != 0) break;
    if (status != Status::ok) {
      rows.count = 0;
      return status;
    }
    atoll_api::abi::ScannedRow& filled = rows.rows[rows.count++];
    filled = {};
    filled.number = row.number;
    filled.key_at = key_at;
    filled.key_bytes = wants_key ? row.key_bytes : 0;
    filled.value_bytes = row.value_bytes;
    key_at += filled.key_bytes;
  }
  return Status::ok;
}

Status OpenCursors::OpenCursor::next(ArrayCursor& array, ApiRow& row) const {
  if (row.value_capacity < array_payload_bytes) return Status::invalid_argument;
  const Status status = array.next(row.number, row.value);
  if (status == Status::ok && !keys_only) row.value_bytes = array_payload_bytes;
  return status;
}

Status OpenCursors::OpenCursor::next(MasterTreeCursor& tree, ApiRow& row) const {
  Status status = tree.next();
  if (status != Status::ok) return status;
  if (!keys_only) {
    // If it reads no more than the payload, the cursor takes a shorter path.
    status = tree.get(row.value, std::min(row.value_capacity, tree.payload_bytes()));
    if (status != Status::ok) return status;
    row.value_bytes = tree.payload_bytes();
  }
  std::optional<OriginalKey> original;
  if (is_hash) original.emplace(tree.key());
  const Bytes key = original ? original->bytes() : tree.key();
  DCHECK(key.size() <= atoll_api::kMaxKeyBytes);
  row.key_bytes = static_cast<uint32_t>(key.size());
  copy_bytes(row.key, key.data(), row.key_bytes);
  return Status::ok;
}

Status OpenCursors::OpenCursor::next(SequentialCursor& sequential, ApiRow& row) const {
  const Status status = sequential.next();
  if (status != Status::ok) return status;
  const std::span<const std::byte> payload = sequential.payload();
  row.number = sequential.epoch();
  if (keys_only) return Status::ok;
  row.value_bytes = static_cast<uint32_t>(payload.size());
  copy_bytes(row.value, payload.data(), std::min<size_t>(payload.size(), row.value_capacity));
  return Status::ok;
}

void OpenCursors::OpenCursor::close() {
  number = 0;
  cursor.emplace<std::monostate>();
}

void OpenCursors::close(uint64_t cursor) {
  if (OpenCursor* const open = find(cursor)) open->close();
}

void OpenCursors::close_all() {
  for (const auto& each : cursors_) {
    if (each != nullptr && each->number != 0) each->close();
  }
}

}  // namespace atolldb
