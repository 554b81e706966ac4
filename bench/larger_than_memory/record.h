// Keys and records of YCSB, as Atoll's benchmark has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bench/ycsb/record.h"
#include "engine/mastertree/mastertree.h"

namespace atolldb::peers {

inline constexpr uint32_t kNodes = 2;  // partitions of the keys, as with two nodes of Atoll
inline constexpr uint32_t kRecordBytes = 100;

class Key {
 public:
  explicit Key(uint64_t id) : bytes_(ordered_key(id)) {}
  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::array<std::byte, 8> bytes_;
};

/// A record with one field, whose bytes follow from its id and its count of updates.
class Record {
 public:
  void fill(uint64_t id, uint64_t updates) {
    ycsb::fill_field(bytes_.data(), kRecordBytes, id, 0, updates);
  }
  bool is_of(uint64_t id) const { return ycsb::looks_whole(bytes_.data(), kRecordBytes, id, 0); }

  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes_.data()), kRecordBytes};
  }
  std::span<char> buffer() { return {reinterpret_cast<char*>(bytes_.data()), kRecordBytes}; }

 private:
  std::array<std::byte, kRecordBytes> bytes_{};
};

}  // namespace atolldb::peers
