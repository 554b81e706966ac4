// A bucket: a mapper's records of one storage, collected until they are sorted and shipped. Source:
// [FOEDUS15] section 7.3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/gleaner/gleaned_record.h"
#include "shared/base/check.h"

namespace atolldb {

class Bucket {
 public:
  /// Allocates room for `bytes` of records, and for as many keys as there are records of 48 bytes.
  explicit Bucket(uint64_t bytes)
      : bytes_(bytes),
        records_(std::make_unique_for_overwrite<std::byte[]>(bytes)),
        keys_(std::make_unique_for_overwrite<SortKey[]>(max_records(bytes))) {}

  static constexpr uint64_t max_records(uint64_t bytes) { return bytes / 48; }
  /// Returns the memory of a bucket in bytes.
  static constexpr uint64_t footprint(uint64_t bytes) {
    return bytes + max_records(bytes) * sizeof(SortKey);
  }

  bool is_empty() const { return count_ == 0; }
  bool has_room(uint32_t bytes) const {
    return used_ + bytes <= bytes_ && count_ < max_records(bytes_);
  }
  uint64_t used_bytes() const { return used_; }

  /// REQUIRES: has_room(gleaned_bytes(record)).
  void add(const LogRecord& record, StorageType type, const LogBlockHeader& header) {
    const LogRecord* gleaned = write_gleaned(record, type, header, records_.get() + used_);
    used_ += gleaned->length;
    keys_[count_++] = SortKey::of(*gleaned);
  }
  /// Returns the keys in arrival order. The caller may sort them. Valid until clear().
  std::span<SortKey> keys() { return {keys_.get(), count_}; }
  void clear() { used_ = count_ = 0; }

  uint32_t storage = 0;  // set and used by the owner only

 private:
  uint64_t bytes_;
  uint64_t used_ = 0;
  uint64_t count_ = 0;
  std::unique_ptr<std::byte[]> records_;
  std::unique_ptr<SortKey[]> keys_;
};

}  // namespace atolldb
