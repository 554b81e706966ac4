// Logical redo-only log record, without page ids. Source: [FOEDUS15] appendix D.2. The record also
// holds the new payload of a planned write until the commit applies it to the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "shared/base/check.h"

namespace atolldb {

enum class LogType : uint8_t {
  filler = 0,  // without effect: superseded within its transaction, or padding
  insert = 1,  // whole payload; the record exists afterwards
  update = 2,  // payload range [payload_offset, + payload_bytes) of an existing record
  erase = 3,
  append = 4,  // no key; payload_offset: number of the append in its transaction
  add = 5,     // adds to the number at payload_offset; bytes that the record lacks are zeros (R83)
};

constexpr uint32_t align8(uint32_t bytes) {
  DCHECK(bytes <= UINT32_MAX - 7);
  return (bytes + 7) & ~7u;
}

/// Bytes of the shortest filler: up to and including the length field.
inline constexpr uint32_t kMinLogRecordBytes = 8;

///   0        1      2          4         8           12              14             16     24
///   [ type ][number][key bytes][ length  ][storage id][payload offset][payload bytes][ VID ]
///   then the key and the payload, each padded to 8 bytes.
struct LogRecord {
  LogType type;
  uint8_t number;  // add: IncrementType of the number; else 0
  uint16_t key_bytes;
  uint32_t length;  // bytes of the whole record, a multiple of 8; at least bytes(key, payload)
  uint32_t storage_id;
  uint16_t payload_offset;
  uint16_t payload_bytes;
  uint64_t vid;

  std::byte* key() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* key() const { return reinterpret_cast<const std::byte*>(this + 1); }
  std::byte* payload() { return key() + align8(key_bytes); }
  const std::byte* payload() const { return key() + align8(key_bytes); }
  std::span<const std::byte> key_span() const { return {key(), key_bytes}; }

  static constexpr uint32_t bytes(uint32_t key_bytes, uint32_t payload_bytes) {
    return static_cast<uint32_t>(sizeof(LogRecord)) + align8(key_bytes) + align8(payload_bytes);
  }
};
static_assert(sizeof(LogRecord) == 24);

}  // namespace atolldb
