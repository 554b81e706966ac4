// The storages of a benchmark: parameters for their creation, and the look-up by jobs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/api/storage_lookup.h"
#include "engine/array/array.h"
#include "engine/hash/hash_key.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"

namespace atolldb::bench {

struct StorageSpec {
  std::string_view name;
  StorageType type;
  uint32_t payload_bytes;  // array: size of each record; mastertree: typical size; sequential: 0
  uint64_t record_count;   // array only
};

/// Returns the records per leaf page of an array.
constexpr uint32_t records_per_leaf(uint32_t payload_bytes) {
  return static_cast<uint32_t>((kPageBytes - sizeof(PageHeader)) /
                               (sizeof(RecordHead) + align8(payload_bytes)));
}

/// Returns `rows` rounded up to whole leaf pages. If the parts of an array begin at multiples of
/// this number, no two parts share a leaf page. So a leaf page can be on the node of its part.
constexpr uint64_t whole_leaves(uint32_t payload_bytes, uint64_t rows) {
  const uint64_t per_leaf = records_per_leaf(payload_bytes);
  return (rows + per_leaf - 1) / per_leaf * per_leaf;
}

/// The 64-bit key of a record as a tree stores it. In a hash storage it is the hash.
class StoredId {
 public:
  StoredId() = default;
  StoredId(uint64_t id, bool is_hash) { set(id, is_hash); }

  Bytes set(uint64_t id, bool is_hash) {
    bytes_ = ordered_key(id);
    if (is_hash) put_slice(hash_of_key(bytes_), bytes_.data());
    return bytes_;
  }
  operator Bytes() const { return bytes_; }

 private:
  std::array<std::byte, sizeof(uint64_t)> bytes_;
};

/// Finds storages and remembers the first missing one.
class StorageOpener {
 public:
  explicit StorageOpener(ControlSegment& control) : control_(control) {}

  /// Returns the storage. If it is missing, returns an empty control block: handles may be made
  /// from it but not used. Check `missing` first.
  StorageControl& find(std::string_view name, StorageType type) {
    StorageControl* storage = find_storage(control_, name, type);
    if (storage != nullptr) return *storage;
    if (missing_.empty()) missing_ = name;
    empty_.type = type;
    return empty_;
  }
  Array array(std::string_view name) { return Array(find(name, StorageType::array)); }
  MasterTree tree(std::string_view name) { return MasterTree(find(name, StorageType::mastertree)); }
  /// Returns the tree of a hash storage, whose keys are StoredIds.
  MasterTree hash(std::string_view name) { return MasterTree(find(name, StorageType::hash)); }
  Sequential sequential(std::string_view name) {
    return Sequential(find(name, StorageType::sequential));
  }
  /// Name of the first missing storage; empty: all were found.
  const std::string& missing() const { return missing_; }

 private:
  ControlSegment& control_;
  StorageControl empty_{};
  std::string missing_;
};

}  // namespace atolldb::bench
