// Layout of a record of a Master-tree border page: head, lengths, key suffix, payload.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "shared/base/pointer.h"

namespace atolldb {

/// Remainder of a record that was created as a next layer. The remainder of any other record is the
/// number of key bytes left at its layer, including the 8-byte slice. With 0 to 8 bytes the key
/// ends in this layer. With more, the bytes after the slice are the suffix. A record that has
/// become a next layer keeps its remainder and its suffix.
inline constexpr uint16_t kRemainderNextLayer = 0xffff;

///   0     8    16    18         20        22             24
///   [lock][VID][slot][remainder][capacity][payload bytes][suffix, padded][payload, capacity]
struct TreeRecord {
  RecordHead head;
  uint16_t slot;  // slot number in its page, which leads to the slice
  uint16_t remainder;
  uint16_t capacity;                    // payload bytes allocated, a multiple of 8
  std::atomic<uint16_t> payload_bytes;  // changes together with the VID

  static constexpr uint32_t kHeadBytes = 24;

  static constexpr uint32_t suffix_bytes_for(uint32_t remainder) {
    return remainder > 8 && remainder != kRemainderNextLayer ? remainder - 8 : 0;
  }
  static constexpr uint32_t bytes_for(uint32_t remainder, uint32_t capacity) {
    return kHeadBytes + align8(suffix_bytes_for(remainder)) + capacity;
  }
  /// Returns the capacity for `payload_bytes`, and for a dual pointer if a next layer may replace
  /// the payload.
  static constexpr uint32_t capacity_for(uint32_t remainder, uint32_t payload_bytes) {
    const uint32_t capacity = align8(payload_bytes);
    return remainder > 8 && capacity < sizeof(DualPointer) ? sizeof(DualPointer) : capacity;
  }

  uint32_t suffix_bytes() const { return suffix_bytes_for(remainder); }
  std::byte* suffix() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* suffix() const { return reinterpret_cast<const std::byte*>(this + 1); }
  std::byte* payload() { return suffix() + align8(suffix_bytes()); }
  uint16_t payload_at() const { return static_cast<uint16_t>(kHeadBytes + align8(suffix_bytes())); }
  uint32_t bytes() const { return bytes_for(remainder, capacity); }
  /// REQUIRES: the VID has the flag next_layer.
  DualPointer* next_layer() { return reinterpret_cast<DualPointer*>(payload()); }
};
static_assert(sizeof(TreeRecord) == TreeRecord::kHeadBytes);

/// Thread: the committing worker, while the VID has the flag kBeingWritten. Release: orders the
/// store after that flag.
inline void set_payload_bytes(RecordHead& record, uint16_t bytes) {
  reinterpret_cast<TreeRecord&>(record).payload_bytes.store(bytes, std::memory_order_release);
}

}  // namespace atolldb
