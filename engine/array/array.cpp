#include "engine/array/array.h"

#include <algorithm>
#include <cstring>

#include "engine/array/array_page.h"
#include "shared/check.h"

namespace atolldb {

namespace {

/// Puts an empty page behind `pointer`, which read as `seen` (null). R1: by CAS from exactly that
/// word; R5: never over a pointer that the transaction depends on.
Status install_page(Transaction& txn, DualPointer& pointer, VolatilePointer seen, PageType type,
                    uint8_t level, uint32_t storage_id) {
  if (txn.depends_on(&pointer)) return Status::pointer_installed;
  WorkerContext& worker = txn.worker();
  PageHeader* page = worker.pages().take();
  if (page == nullptr) return Status::volatile_pool_exhausted;
  std::memset(reinterpret_cast<std::byte*>(page) + sizeof(PageHeader), 0,
              kPageBytes - sizeof(PageHeader));
  page->type = type;
  page->level = level;
  page->storage_id = storage_id;
  page->last_modifier.store(static_cast<uint16_t>(worker.node()), std::memory_order_relaxed);
  uint64_t expected = seen.word();
  // Release: the page is complete before anybody can find it. A loser just uses the winner's page.
  if (!pointer.volatile_word.compare_exchange_strong(
          expected, page->self, std::memory_order_acq_rel, std::memory_order_acquire)) {
    worker.pages().give_back(page);
  }
  return Status::ok;
}

Bytes8 key_of(uint64_t index) {
  Bytes8 key;
  std::memcpy(key.data(), &index, sizeof(index));
  return key;
}

}  // namespace

Array::Array(StorageControl& storage)
    : storage_(&storage),
      record_count_(storage.record_count),
      payload_bytes_(storage.payload_bytes),
      record_bytes_(static_cast<uint32_t>(sizeof(RecordHead)) + align8(storage.payload_bytes)),
      records_per_leaf_(std::min(static_cast<uint32_t>(sizeof(ArrayLeaf::data)) / record_bytes_,
                                 kMaxRecordsPerArrayLeaf)),
      levels_(1) {
  CHECK(storage.type == StorageType::array);
  uint64_t pages = (record_count_ + records_per_leaf_ - 1) / records_per_leaf_;
  for (; pages > 1; pages = (pages + kArrayFanout - 1) / kArrayFanout) ++levels_;
  divisor_[0] = records_per_leaf_;
  for (uint32_t level = 1; level < kMaxLevels; ++level) {
    divisor_[level] = divisor_[level - 1] * kArrayFanout;
  }
}

Status Array::locate(Transaction& txn, uint64_t index, bool create, RecordRef& ref) const {
  const Status status = txn.check();
  if (status != Status::ok) return status;
  if (index >= record_count_) return Status::out_of_range;
  WorkerContext& worker = txn.worker();
  DualPointer* pointer = &storage_->root;
  uint64_t rest = index;
  for (uint32_t level = levels_; level-- > 0;) {
    VolatilePointer word = pointer->load_acquire();
    while (word.is_null()) {
      if (!create && !txn.installs_on_read()) {
        ref.record = nullptr;
        return txn.register_pointer(pointer, word.word());
      }
      const PageType type = level == 0 ? PageType::array_leaf : PageType::array_interior;
      const Status installed =
          install_page(txn, *pointer, word, type, static_cast<uint8_t>(level), storage_->id);
      if (installed != Status::ok) return installed;
      word = pointer->load_acquire();
    }
    PageHeader* page = worker.resolve(word);
    if (level == 0) {
      ref.record = reinterpret_cast<ArrayLeaf*>(page)->record(rest, record_bytes_);
      ref.payload_at = sizeof(RecordHead);
      ref.payload_bytes = static_cast<uint16_t>(payload_bytes_);
      ref.storage_id = storage_->id;
      ref.name = UniversalName::make(word, sizeof(PageHeader) + rest * record_bytes_);
      ref.identity = identity_of(storage_->id, key_of(index));
      return Status::ok;
    }
    pointer = &reinterpret_cast<ArrayInterior*>(page)->children[rest / divisor_[level - 1]];
    rest %= divisor_[level - 1];
  }
  return Status::ok;
}

Status Array::get(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                  void* out) const {
  if (offset + uint64_t{count} > payload_bytes_) return Status::out_of_range;
  RecordRef ref;
  const Status status = locate(txn, index, false, ref);
  if (status != Status::ok) return status;
  if (ref.record == nullptr) {
    std::memset(out, 0, count);
    return Status::ok;
  }
  Vid seen;
  return txn.read(ref, offset, count, out, seen);
}

Status Array::get_for_update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                             void* out, RecordRef& ref) const {
  if (offset + uint64_t{count} > payload_bytes_) return Status::out_of_range;
  const Status status = locate(txn, index, true, ref);
  if (status != Status::ok) return status;
  Vid seen;
  return txn.read(ref, offset, count, out, seen);
}

Status Array::get_many(Transaction& txn, std::span<const uint64_t> indexes, void* out) const {
  auto* to = static_cast<std::byte*>(out);
  for (size_t first = 0; first < indexes.size(); first += kBatch) {
    const size_t count = std::min<size_t>(kBatch, indexes.size() - first);
    std::array<RecordRef, kBatch> refs;
    for (size_t i = 0; i < count; ++i) {
      const Status status = locate(txn, indexes[first + i], false, refs[i]);
      if (status != Status::ok) return status;
      if (refs[i].record != nullptr) prefetch_record(refs[i]);
    }
    for (size_t i = 0; i < count; ++i, to += payload_bytes_) {
      if (refs[i].record == nullptr) {
        std::memset(to, 0, payload_bytes_);
        continue;
      }
      Vid seen;
      const Status status = txn.read(refs[i], 0, payload_bytes_, to, seen);
      if (status != Status::ok) return status;
    }
  }
  return Status::ok;
}

Status Array::update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                     const void* bytes) const {
  RecordRef ref;
  const Status status = locate(txn, index, true, ref);
  if (status != Status::ok) return status;
  return update(txn, ref, index, offset, count, bytes);
}

Status Array::update(Transaction& txn, const RecordRef& ref, uint64_t index, uint32_t offset,
                     uint32_t count, const void* bytes) const {
  if (offset + uint64_t{count} > payload_bytes_) return Status::out_of_range;
  const Status status = txn.check();
  if (status != Status::ok) return status;
  return txn.write_update(ref, key_of(index), offset,
                          {static_cast<const std::byte*>(bytes), count});
}

Status Array::increment(Transaction& txn, uint64_t index, uint32_t offset, IncrementType type,
                        const void* delta) const {
  if (offset + uint64_t{increment_bytes(type)} > payload_bytes_) return Status::out_of_range;
  RecordRef ref;
  const Status status = locate(txn, index, true, ref);
  if (status != Status::ok) return status;
  return txn.write_increment(ref, key_of(index), offset, type, delta);
}

void Array::prefetch_record(const RecordRef& ref) const {
  const auto* start = reinterpret_cast<const std::byte*>(ref.record);
  const uint32_t bytes = std::min(record_bytes_, kMaxPrefetchBytes);
  for (uint32_t at = 0; at < bytes; at += 64) __builtin_prefetch(start + at);
  __builtin_prefetch(start + bytes - 1);
}

void Array::prefetch(Transaction& txn, std::span<const uint64_t> indexes) const {
  WorkerContext& worker = txn.worker();
  for (const uint64_t index : indexes) {
    if (index >= record_count_) continue;
    const DualPointer* pointer = &storage_->root;
    uint64_t rest = index;
    for (uint32_t level = levels_; level-- > 0;) {
      const VolatilePointer word = pointer->load_acquire();
      if (word.is_null()) break;
      PageHeader* page = worker.view().resolve(word);
      if (level == 0) {
        RecordRef ref;
        ref.record = reinterpret_cast<ArrayLeaf*>(page)->record(rest, record_bytes_);
        prefetch_record(ref);
        break;
      }
      pointer = &reinterpret_cast<ArrayInterior*>(page)->children[rest / divisor_[level - 1]];
      rest %= divisor_[level - 1];
    }
  }
}

ArrayCursor::ArrayCursor(const Array& array, Transaction& txn, uint64_t first, uint64_t last,
                         bool forward)
    : array_(array), txn_(&txn), next_(0), left_(0), forward_(forward) {
  if (array.record_count() == 0 || first > last) return;
  last = std::min(last, array.record_count() - 1);
  if (first > last) return;
  next_ = forward ? first : last;
  left_ = last - first + 1;
}

Status ArrayCursor::next(uint64_t& index, void* out) {
  if (left_ == 0) return Status::end_of_scan;
  const Status status = array_.get(*txn_, next_, out);
  if (status != Status::ok) return status;
  index = next_;
  next_ = forward_ ? next_ + 1 : next_ - 1;
  --left_;
  return Status::ok;
}

}  // namespace atolldb
