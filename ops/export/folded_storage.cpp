#include "ops/export/folded_storage.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "engine/format/tree_key.h"
#include "engine/hash/hash_key.h"
#include "engine/mastertree/mastertree.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

std::string text_of_payload(const LogRecord& record) {
  return {reinterpret_cast<const char*>(record.payload()), record.payload_bytes};
}

std::span<std::byte> bytes_of_text(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

/// Returns the memory of a text beside the string itself.
uint64_t bytes_outside(size_t length) {
  constexpr size_t kLengthWithinString = 15;
  constexpr uint64_t kAllocationBytes = 16;
  return length <= kLengthWithinString ? 0 : length + 1 + kAllocationBytes;
}

/// Returns the bytes of an index as a key in gleaned form.
std::string key_of_index(uint64_t index) {
  const uint64_t swapped = __builtin_bswap64(index);
  return {reinterpret_cast<const char*>(&swapped), sizeof swapped};
}

}  // namespace

const char* FoldedStorage::add(const LogRecord& record) {
  DCHECK(record.type != LogType::filler && record.storage_id == storage_.id);
  switch (storage_.type) {
    case StorageType::array:
      return add_to_array(record);
    case StorageType::mastertree:
    case StorageType::hash:
      return add_to_tree(record);
    case StorageType::sequential:
      if (record.type != LogType::append || record.key_bytes != 0) return "is no append";
      appends_.push_back(
          {Vid(record.vid).version(), record.payload_offset, text_of_payload(record)});
      // While the rows are made, each append exists twice. A vector has up to twice its elements.
      memory_bytes_ += 2 * sizeof(Append) + sizeof(Row) + bytes_outside(record.payload_bytes);
      return nullptr;
    case StorageType::none:
      break;
  }
  return "belongs to a storage without a type";
}

FoldedStorage::Folded& FoldedStorage::record_of(const std::string& key) {
  // A node of the table: links, hash, and the allocation. The row is made before the node is freed.
  constexpr uint64_t kNodeBytes = sizeof(std::pair<const std::string, Folded>) + 48;
  const auto [entry, is_new] = folded_.try_emplace(key);
  if (is_new) {
    memory_bytes_ += kNodeBytes + sizeof(Row) + bytes_outside(key.size());
    // `finish` gives records of arrays a payload if they have only updates.
    if (storage_.type == StorageType::array) memory_bytes_ += bytes_outside(storage_.payload_bytes);
  }
  return entry->second;
}

template <typename Change>
void FoldedStorage::change_updates(Folded& folded, Change change) {
  memory_bytes_ -= folded.updates.memory_bytes();
  change(folded.updates);
  memory_bytes_ += folded.updates.memory_bytes();
}

const char* FoldedStorage::add_to_array(const LogRecord& record) {
  uint64_t index = 0;
  if (record.key_bytes != sizeof index) return "has no number as its key";
  std::memcpy(&index, record.key(), sizeof index);
  const bool is_whole = record.payload_bytes == storage_.payload_bytes;
  const bool has_type =
      record.type == LogType::update || (record.type == LogType::insert && is_whole);
  const uint64_t end = record.payload_offset + uint64_t{record.payload_bytes};
  if (!has_type || index >= storage_.record_count || end > storage_.payload_bytes) {
    return "does not fit its array";
  }
  const std::string key = key_of_index(index);
  if (is_whole) {
    add_whole(key, record);
    return nullptr;
  }
  change_updates(record_of(key), [&](UpdateList& updates) {
    updates.add(Vid(record.vid).version(), record.payload_offset,
                {record.payload(), record.payload_bytes});
  });
  return nullptr;
}

const char* FoldedStorage::add_to_tree(const LogRecord& record) {
  if (record.key_bytes > MasterTree::kMaxKeyBytes) return "is too long";
  if (record.payload_bytes > MasterTree::kMaxPayloadBytes) return "is too long";
  if (storage_.type == StorageType::hash && !is_stored_form({record.key(), record.key_bytes})) {
    return "has a key that its hash storage cannot have";
  }
  const std::string key(reinterpret_cast<const char*>(record.key()), record.key_bytes);
  switch (record.type) {
    case LogType::insert:
    case LogType::erase:
      add_whole(key, record);
      return nullptr;
    case LogType::update: {
      Folded& folded = record_of(key);
      const uint64_t version = Vid(record.vid).version();
      if (folded.version >= version) return nullptr;
      change_updates(folded, [&](UpdateList& updates) {
        updates.add(version, record.payload_offset, {record.payload(), record.payload_bytes});
      });
      return nullptr;
    }
    case LogType::filler:
    case LogType::append:
    case LogType::add:  // a pending addition needs a snapshot (R83)
      break;
  }
  return "has a type that its storage does not have";
}

/// Stores a whole version, or a deletion, if it is newer than the version that is there (R92).
void FoldedStorage::add_whole(const std::string& key, const LogRecord& record) {
  Folded& folded = record_of(key);
  const uint64_t version = Vid(record.vid).version();
  if (folded.version >= version) return;
  folded.version = version;
  folded.exists = record.type != LogType::erase;
  const bool is_counted = storage_.type == StorageType::array;  // by record_of
  if (!is_counted) memory_bytes_ -= bytes_outside(folded.payload.size());
  folded.payload = folded.exists ? text_of_payload(record) : std::string();
  if (!is_counted) memory_bytes_ += bytes_outside(folded.payload.size());
  change_updates(folded, [&](UpdateList& updates) { updates.drop_until(version); });
}

const char* FoldedStorage::finish() {
  CHECK(rows_.empty());
  if (storage_.type == StorageType::sequential) {
    finish_appends();
    return nullptr;
  }
  rows_.reserve(folded_.size());
  while (!folded_.empty()) {
    // Takes the entry out of the table, so that the memory of all rows is needed once.
    auto entry = folded_.extract(folded_.begin());
    if (const char* defect = finish_record(entry.mapped())) return defect;
    if (!entry.mapped().exists) continue;
    const uint64_t number = slice_of(std::as_bytes(std::span(entry.key())));
    rows_.push_back({number, std::move(entry.key()), std::move(entry.mapped().payload),
                     Vid(entry.mapped().version)});
  }
  std::ranges::sort(rows_, {}, &Row::key);
  return nullptr;
}

/// Applies the updates that are newer than the whole version (R94).
const char* FoldedStorage::finish_record(Folded& folded) {
  folded.updates.drop_until(folded.version);
  if (folded.updates.is_empty()) return nullptr;
  // All records of an array exist, and are zeros until they are written.
  if (storage_.type == StorageType::array && !folded.exists) {
    folded.exists = true;
    folded.payload.assign(storage_.payload_bytes, '\0');
  }
  if (!folded.exists) return "has an update without a record";
  const uint64_t newest = folded.updates.newest();
  bool fits = true;
  folded.updates.apply(folded.version, bytes_of_text(folded.payload), fits);
  if (!fits) return "has an update that ends after its record";
  folded.version = newest;
  return nullptr;
}

void FoldedStorage::finish_appends() {
  // Records of several workers may have equal VIDs. The payload makes their order the same in each
  // export.
  std::ranges::sort(appends_, {}, [](const Append& append) {
    return std::tuple<uint64_t, uint16_t, std::string_view>(append.version, append.number,
                                                            append.payload);
  });
  rows_.reserve(appends_.size());
  for (Append& append : appends_) {
    rows_.push_back({rows_.size(), {}, std::move(append.payload), Vid(append.version)});
  }
  appends_.clear();
}

std::string FoldedStorage::walked_key(const Row& row) const {
  if (storage_.type != StorageType::hash) return row.key;
  const OriginalKey key(std::as_bytes(std::span(row.key)));
  const Bytes bytes = key;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace atolldb
