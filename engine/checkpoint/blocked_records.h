// Records for which a replay finds no room while there are tombstones (R93).
//
// Keys of one slice that differ in zero bytes at their ends share a page. If the page is full, and
// tombstones or superseded records take the room, a running cluster waits until they can be
// removed. A replay keeps the record here instead, and stores it after the tombstones are removed.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "engine/checkpoint/replayed_record.h"
#include "engine/format/tree_key.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"

namespace atolldb {

/// Returns a text that names a record: the storage id in 4 bytes, then the key.
inline std::string record_name(uint32_t storage_id, Bytes key) {
  std::string name(sizeof storage_id + key.size(), '\0');
  std::memcpy(name.data(), &storage_id, sizeof storage_id);
  if (!key.empty()) std::memcpy(name.data() + sizeof storage_id, key.data(), key.size());
  return name;
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
    Vid vid;
    std::string payload;
  };

  /// Keeps the record, unless a newer version of it is kept. Thread: any.
  Replayed add(uint32_t storage_id, Bytes key, Vid vid, Bytes payload) {
    DCHECK(vid.ordinal() != 0 && !vid.is_deleted());
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = records_.try_emplace(record_name(storage_id, key));
    if (!is_new && at->second.vid.version() >= vid.version()) return Replayed::older;
    at->second.vid = vid;
    at->second.payload.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
    return is_new ? Replayed::inserted : Replayed::overwritten;
  }
  bool contains(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return records_.contains(name);
  }
  /// REQUIRES: no other thread uses the object.
  std::map<std::string, Record>& records() { return records_; }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Record> records_;  // by record_name
};

}  // namespace atolldb
