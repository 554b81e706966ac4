// Records and tombstones for which a replay finds no room while there are tombstones (R93).
//
// Keys of one slice that differ in zero bytes at their ends share a page. If the page is full, and
// tombstones or superseded records take the room, a running cluster waits until they can be
// removed. A replay keeps the record here instead, and stores it after the tombstones are removed.
// A tombstone that is kept here only makes older versions of its key count as older.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/checkpoint/replayed_record.h"
#include "engine/format/tree_key.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"

namespace atolldb {

/// A text that names a record: the storage id in 4 bytes, then the key. Allocates no memory.
class RecordName {
 public:
  RecordName(uint32_t storage_id, Bytes key) : bytes_(sizeof storage_id + key.size()) {
    CHECK(bytes_ <= text_.size());
    std::memcpy(text_.data(), &storage_id, sizeof storage_id);
    if (!key.empty()) std::memcpy(text_.data() + sizeof storage_id, key.data(), key.size());
  }
  std::string_view view() const { return {text_.data(), bytes_}; }

 private:
  std::array<char, sizeof(uint32_t) + kMaxTreeKeyBytes> text_;
  size_t bytes_;
};

/// Lets look-ups use a RecordName, which allocates nothing. Not noexcept: a table of
/// libstdc++ then keeps the hash of each name.
struct RecordNameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

inline std::string record_name(uint32_t storage_id, Bytes key) {
  return std::string(RecordName(storage_id, key).view());
}
inline uint32_t storage_id_in_name(const std::string& name) {
  uint32_t id = 0;
  CHECK(name.size() >= sizeof id);
  std::memcpy(&id, name.data(), sizeof id);
  return id;
}
inline Bytes key_in_name(const std::string& name) {
  DCHECK(name.size() >= sizeof(uint32_t));
  return std::as_bytes(std::span(name)).subspan(sizeof(uint32_t));
}

/// Returns whether the status says that other records of the page take the room.
inline bool is_blocked(Status status) {
  return status == Status::write_conflict || status == Status::payload_too_long;
}

class BlockedRecords {
 public:
  struct Record {
    Vid vid;  // with the flag of a tombstone, or without flags
    std::string payload;
  };

  /// Keeps the record or the tombstone, unless a newer version of it is kept. Thread: any.
  Replayed add(uint32_t storage_id, Bytes key, Vid vid, Bytes payload) {
    DCHECK(vid.ordinal() != 0 && (!vid.is_deleted() || payload.empty()));
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = records_.try_emplace(record_name(storage_id, key));
    if (!is_new && at->second.vid.version() >= vid.version()) return Replayed::older;
    is_used_.store(true, std::memory_order_release);
    at->second.vid = vid;
    at->second.payload.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
    return is_new ? Replayed::inserted : Replayed::overwritten;
  }
  /// Returns the VID of what is kept of this name, or VID 0. Thread: any.
  Vid find(const std::string& name) const {
    DCHECK(name.size() >= sizeof(uint32_t));
    if (!is_used()) return {};
    const std::lock_guard lock(mutex_);
    const auto at = records_.find(name);
    return at == records_.end() ? Vid() : at->second.vid;
  }
  /// Returns whether this version of the record, or a newer one, is kept. Thread: any.
  bool has_newer(uint32_t storage_id, Bytes key, Vid vid) const {
    if (!is_used()) return false;
    const std::lock_guard lock(mutex_);
    const auto at = records_.find(record_name(storage_id, key));
    return at != records_.end() && at->second.vid.version() >= vid.version();
  }
  /// Returns whether anything was ever kept. A replay asks for each record, and mostly nothing is.
  /// Acquire: pairs with the store in `add`. Thread: any.
  bool is_used() const { return is_used_.load(std::memory_order_acquire); }
  /// Returns the number of records without tombstones. REQUIRES: as for `records`.
  size_t record_count() const {
    return static_cast<size_t>(std::ranges::count_if(
        records_, [](const auto& entry) { return !entry.second.vid.is_deleted(); }));
  }
  /// REQUIRES: no other thread uses the object.
  std::map<std::string, Record>& records() { return records_; }

 private:
  std::atomic<bool> is_used_{false};
  mutable std::mutex mutex_;
  std::map<std::string, Record> records_;  // by record_name
};

}  // namespace atolldb
