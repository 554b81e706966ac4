// The storages of a benchmark: parameters for their creation, and the look-up by jobs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/storage_lookup.h"
#include "engine/array/array.h"
#include "engine/format/array_page.h"
#include "engine/hash/hash_key.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "shared/base/check.h"

namespace atolldb::bench {

struct StorageSpec {
  std::string_view name;
  StorageType type;
  uint32_t payload_bytes;  // array: size of each record; mastertree: typical size; sequential: 0
  uint64_t record_count;   // array only
};

/// Returns the records per leaf page of an array.
constexpr uint32_t records_per_leaf(uint32_t payload_bytes) {
  return static_cast<uint32_t>((kPageBytes - sizeof(ArrayPage)) /
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

/// Finds storages and remembers the first one that is missing, or that has other sizes than its
/// spec. A job reads whole records of arrays into rows of its own, so the sizes must be equal.
class StorageOpener {
 public:
  /// An array of 0 records in `specs` may have any number of them.
  StorageOpener(ControlSegment& control, std::vector<StorageSpec> specs)
      : control_(control), specs_(std::move(specs)) {}

  /// Returns the storage. If it is missing or wrong, returns an empty control block: handles may be
  /// made from it but not used. Check `fault` first. REQUIRES: the specs have the name.
  StorageControl& find(std::string_view name) {
    const auto spec = std::ranges::find(specs_, name, &StorageSpec::name);
    CHECK(spec != specs_.end());
    StorageControl* const storage = find_storage(control_, name, spec->type);
    const std::string fault =
        storage == nullptr ? std::string("not found") : fault_of(*storage, *spec);
    if (fault.empty()) return *storage;
    if (fault_.empty()) fault_ = "storage \"" + std::string(name) + "\": " + fault;
    empty_.type = spec->type;
    return empty_;
  }
  Array array(std::string_view name) { return Array(find(name)); }
  /// Returns the tree of a Master-tree, or of a hash storage, whose keys are StoredIds.
  MasterTree tree(std::string_view name) { return MasterTree(find(name)); }
  Sequential sequential(std::string_view name) { return Sequential(find(name)); }
  /// Says what is wrong with the first wrong storage; empty: all are as their specs say.
  const std::string& fault() const { return fault_; }

 private:
  /// The sizes of other storages than arrays are hints, and their readers check each record.
  static std::string fault_of(const StorageControl& storage, const StorageSpec& spec) {
    if (spec.type != StorageType::array) return "";
    if (storage.payload_bytes != spec.payload_bytes) {
      return "its records have " + std::to_string(storage.payload_bytes) + " bytes, not " +
             std::to_string(spec.payload_bytes);
    }
    if (spec.record_count != 0 && storage.record_count != spec.record_count) {
      return "it has " + std::to_string(storage.record_count) + " records, not " +
             std::to_string(spec.record_count);
    }
    return "";
  }

  ControlSegment& control_;
  const std::vector<StorageSpec> specs_;
  StorageControl empty_{};
  std::string fault_;
};

}  // namespace atolldb::bench
