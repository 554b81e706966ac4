#include "engine/checkpoint/replayed_appends.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "engine/checkpoint/replayed_record.h"
#include "engine/format/vid.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Bytes of a copy of an append record, without what a commit has left after it.
uint32_t append_bytes(const LogRecord& record) { return LogRecord::bytes(0, record.payload_bytes); }

uint64_t append_epoch(const LogRecord* record) { return Vid(record->vid).epoch(); }

/// Records that one begin epoch of the worker covers.
constexpr size_t kRecordsPerEntry = 1024;

}  // namespace

std::byte* CollectedAppends::allocate(uint32_t bytes) {
  CHECK(bytes <= kChunkBytes && bytes % 8 == 0);
  if (used_ + bytes > kChunkBytes) {
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkBytes));
    used_ = 0;
  }
  std::byte* place = chunks_.back().get() + used_;
  used_ += bytes;
  return place;
}

void CollectedAppends::add(const LogRecord& record) {
  DCHECK(record.type == LogType::append && record.key_bytes == 0);
  const uint32_t bytes = append_bytes(record);
  std::byte* place = allocate(bytes);
  std::memcpy(place, &record, bytes);
  bytes_ += bytes;
  records_[record.storage_id].push_back(reinterpret_cast<const LogRecord*>(place));
}

SortedAppends::SortedAppends(uint32_t storage_id,
                             std::span<const CollectedAppends* const> collected) {
  for (const CollectedAppends* one : collected) {
    const auto found = one->records().find(storage_id);
    if (found == one->records().end()) continue;
    records_.insert(records_.end(), found->second.begin(), found->second.end());
  }
  // Records of several workers may have equal VIDs. Their order does not matter, but records of one
  // transaction must keep theirs.
  std::ranges::sort(records_, {}, [](const LogRecord* record) {
    return std::pair(Vid(record->vid).version(), record->payload_offset);
  });
}

size_t SortedAppends::round_up(size_t position) const {
  if (position == 0 || position >= records_.size()) return std::min(position, records_.size());
  const uint64_t epoch = append_epoch(records_[position - 1]);
  const auto next =
      std::ranges::find_if(records_.begin() + static_cast<std::ptrdiff_t>(position), records_.end(),
                           [&](const LogRecord* record) { return append_epoch(record) != epoch; });
  return static_cast<size_t>(next - records_.begin());
}

std::span<const LogRecord* const> SortedAppends::part(size_t number, size_t parts) const {
  CHECK(number < parts);
  const size_t begin = round_up(records_.size() * number / parts);
  const size_t end = round_up(records_.size() * (number + 1) / parts);
  CHECK(begin <= end);
  return std::span(records_).subspan(begin, end - begin);
}

Result<void> append_replayed(WorkerContext& worker, StorageControl& storage,
                             std::span<const LogRecord* const> records) {
  CHECK(storage.type == StorageType::sequential);
  const auto failed = [&](Status status) {
    worker.leave();
    return replay_failed(storage.id, status);
  };
  while (!records.empty()) {
    const auto some = records.first(std::min(records.size(), kRecordsPerEntry));
    worker.enter();
    const Status prepared = prepare_list(worker, storage);
    if (prepared != Status::ok) return failed(prepared);
    begin_append(worker, storage);
    Status status = Status::ok;
    for (const LogRecord* record : some) {
      // A record may need a new page.
      if (!worker.reserve_pages(1)) status = Status::volatile_pool_exhausted;
      if (status != Status::ok) break;
      apply_append(worker, storage, *record, Vid(record->vid));
    }
    end_append(worker, storage);
    if (status != Status::ok) return failed(status);
    records = records.subspan(some.size());
  }
  worker.leave();
  return {};
}

}  // namespace atolldb
