// Layout of a record, which makes lost and torn updates visible.
//
//   record = fields of equal size, one after the other
//   field  = [updates 8][words that follow from the record's id, the field and `updates`]
//
// `updates` counts the committed updates of the field since the load. A field is torn if its words
// do not belong to its count. The sum of all counts must be the number of committed updates; a
// smaller sum means lost updates.
#pragma once

#include <cstdint>
#include <cstring>

namespace atolldb::ycsb {

inline constexpr uint32_t kMinFieldBytes = 16;
inline constexpr uint32_t kMaxRecordBytes =
    2'000;  // limit of arrays; the limit of Master-trees is higher

struct RecordShape {
  uint32_t record_bytes = 100;
  uint32_t fields = 1;

  uint32_t field_bytes() const { return record_bytes / fields; }
  uint32_t offset_of(uint32_t field) const { return field * field_bytes(); }
};

constexpr uint64_t mix_bits(uint64_t value) {
  value = (value ^ value >> 32) * 0xd6e8feb86659fd93ull;
  value = (value ^ value >> 32) * 0xd6e8feb86659fd93ull;
  return value ^ value >> 32;
}

/// Returns the first word after the count.
constexpr uint64_t first_word(uint64_t id, uint32_t field, uint64_t updates) {
  return mix_bits((id * 0x9e3779b97f4a7c15ull + field) ^ updates * 0xc2b2ae3d27d4eb4full);
}
inline constexpr uint64_t kWordStep = 0xbf58476d1ce4e5b9ull;

inline uint64_t updates_of(const std::byte* field) {
  uint64_t updates = 0;
  std::memcpy(&updates, field, sizeof(updates));
  return updates;
}

/// Writes a whole field of `bytes` bytes.
inline void fill_field(std::byte* to, uint32_t bytes, uint64_t id, uint32_t field,
                       uint64_t updates) {
  std::memcpy(to, &updates, sizeof(updates));
  uint64_t word = first_word(id, field, updates);
  uint32_t at = 8;
  for (; at + 8 <= bytes; at += 8, word += kWordStep) std::memcpy(to + at, &word, 8);
  std::memcpy(to + at, &word, bytes - at);
}

/// Writes a whole record as it is after the load.
inline void fill_record(std::byte* to, const RecordShape& shape, uint64_t id) {
  std::memset(to, 0, shape.record_bytes);
  for (uint32_t field = 0; field < shape.fields; ++field) {
    fill_field(to + shape.offset_of(field), shape.field_bytes(), id, field, 0);
  }
}

/// Returns whether all bytes of the field are as fill_field writes them for its count.
inline bool is_whole(const std::byte* from, uint32_t bytes, uint64_t id, uint32_t field) {
  uint64_t word = first_word(id, field, updates_of(from));
  uint32_t at = 8;
  for (; at + 8 <= bytes; at += 8, word += kWordStep) {
    if (std::memcmp(from + at, &word, 8) != 0) return false;
  }
  return std::memcmp(from + at, &word, bytes - at) == 0;
}

/// Checks only the first and the last whole word of the field. This is cheap enough for every read
/// of a run.
inline bool looks_whole(const std::byte* from, uint32_t bytes, uint64_t id, uint32_t field) {
  const uint64_t first = first_word(id, field, updates_of(from));
  const uint32_t words = bytes / 8 - 1;
  const uint64_t last = first + (words - 1) * kWordStep;
  return std::memcmp(from + 8, &first, 8) == 0 &&
         std::memcmp(from + size_t{8} * words, &last, 8) == 0;
}

}  // namespace atolldb::ycsb
