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

///   0     4     6          8    16        18             20
///   [lock][slot][remainder][VID][capacity][payload bytes][suffix, padded][payload, capacity]
///
/// Records begin at multiples of 8. The payload follows the head directly if there is no suffix.
/// If a dual pointer may replace the payload, it begins at a multiple of 8.
struct TreeRecord {
  RecordHead head;                      // its slot leads to the slice of the key
  uint16_t capacity;                    // payload bytes allocated: up to the end of the record
  std::atomic<uint16_t> payload_bytes;  // changes together with the VID

  static constexpr uint32_t kHeadBytes = 20;

  static constexpr uint32_t suffix_bytes_for(uint32_t remainder) {
    return remainder > 8 && remainder != kRemainderNextLayer ? remainder - 8 : 0;
  }
  static constexpr uint32_t payload_at_for(uint32_t remainder) {
    return remainder > 8 ? align8(kHeadBytes + suffix_bytes_for(remainder)) : kHeadBytes;
  }
  /// Returns the bytes of a record. REQUIRES: capacity_for returned the capacity for `remainder`.
  static constexpr uint32_t bytes_for(uint32_t remainder, uint32_t capacity) {
    return payload_at_for(remainder) + capacity;
  }
  /// Returns the capacity for `payload_bytes`, and for a dual pointer if a next layer may replace
  /// the payload.
  static constexpr uint32_t capacity_for(uint32_t remainder, uint32_t payload_bytes) {
    const bool may_lead_on = remainder > 8 && payload_bytes < sizeof(DualPointer);
    const uint32_t at = payload_at_for(remainder);
    return align8(at + (may_lead_on ? uint32_t{sizeof(DualPointer)} : payload_bytes)) - at;
  }
  /// Returns the bytes of a record with room for `payload_bytes`.
  static constexpr uint32_t bytes_with(uint32_t remainder, uint32_t payload_bytes) {
    return bytes_for(remainder, capacity_for(remainder, payload_bytes));
  }

  uint32_t suffix_bytes() const { return suffix_bytes_for(head.remainder); }
  std::byte* suffix() { return reinterpret_cast<std::byte*>(this) + kHeadBytes; }
  const std::byte* suffix() const { return reinterpret_cast<const std::byte*>(this) + kHeadBytes; }
  std::byte* payload() { return reinterpret_cast<std::byte*>(this) + payload_at(); }
  uint16_t payload_at() const { return static_cast<uint16_t>(payload_at_for(head.remainder)); }
  uint32_t bytes() const { return bytes_for(head.remainder, capacity); }
  /// REQUIRES: the VID has the flag next_layer.
  DualPointer* next_layer() { return reinterpret_cast<DualPointer*>(payload()); }
};
static_assert(offsetof(TreeRecord, payload_bytes) + sizeof(uint16_t) == TreeRecord::kHeadBytes);
static_assert(TreeRecord::bytes_with(8, 100) == 120 && TreeRecord::bytes_with(8, 0) == 24);
static_assert(TreeRecord::payload_at_for(kRemainderNextLayer) % alignof(DualPointer) == 0);

/// Thread: the committing worker, while the VID has the flag kBeingWritten. Release: orders the
/// store after that flag.
inline void set_payload_bytes(RecordHead& record, uint16_t bytes) {
  reinterpret_cast<TreeRecord&>(record).payload_bytes.store(bytes, std::memory_order_release);
}

}  // namespace atolldb
