// Numbers in payloads: their types, their addition, and additions that wait for their record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shared/base/check.h"

namespace atolldb {

enum class IncrementType : uint8_t { none = 0, i32, i64, u32, u64, f64 };

inline constexpr uint32_t kMaxIncrementBytes = 8;

/// Between an addition that reads nothing and the previous change of its record lie at least this
/// many epochs. The log elides updates across fewer epochs only, so never across such an addition
/// (R35, R83). With default epochs it is 2.6 s.
#ifdef ATOLL_STRESS
inline constexpr uint64_t kAddDistanceEpochs = 2;
#else
inline constexpr uint64_t kAddDistanceEpochs = 256;
#endif

/// Returns the bytes of a number of this type, or 0 if there is no such type.
constexpr uint32_t increment_bytes(IncrementType type) {
  switch (type) {
    case IncrementType::i32:
    case IncrementType::u32:
      return 4;
    case IncrementType::i64:
    case IncrementType::u64:
    case IncrementType::f64:
      return 8;
    case IncrementType::none:
      break;
  }
  return 0;
}

namespace increment_detail {
template <typename T>
void add(const void* value, const void* delta, void* out) {
  T left;
  T right;
  std::memcpy(&left, value, sizeof(T));
  std::memcpy(&right, delta, sizeof(T));
  left = static_cast<T>(left + right);
  std::memcpy(out, &left, sizeof(T));
}
}  // namespace increment_detail

/// *out = *value + *delta (R33). Integers wrap around. Each operand has `increment_bytes(type)`
/// bytes and needs no alignment. The pointers may be equal.
inline void add_increment(IncrementType type, const void* value, const void* delta, void* out) {
  switch (type) {
    // Signed integers are added as unsigned: same bits, and the overflow is defined.
    case IncrementType::i32:
    case IncrementType::u32:
      return increment_detail::add<uint32_t>(value, delta, out);
    case IncrementType::i64:
    case IncrementType::u64:
      return increment_detail::add<uint64_t>(value, delta, out);
    case IncrementType::f64:
      return increment_detail::add<double>(value, delta, out);
    case IncrementType::none:
      return;
  }
}

/// Adds to the number at `offset` of a payload. Bytes that the payload lacks count as zeros, so the
/// payload grows if need be (R83). Returns the new length. REQUIRES: `payload` has room for it.
inline uint32_t add_to_payload(std::byte* payload, uint32_t payload_bytes, uint32_t offset,
                               IncrementType type, const std::byte* delta) {
  const uint32_t end = offset + increment_bytes(type);
  CHECK(end > offset);
  if (end > payload_bytes) {
    std::memset(payload + payload_bytes, 0, end - payload_bytes);
    payload_bytes = end;
  }
  add_increment(type, payload + offset, delta, payload + offset);
  return payload_bytes;
}

/// Payload of an open record with a committed addition: what to add to the record of the snapshot
/// (R83).
///   0       2     3        8        16
///   [offset][type][ zeros ][ delta  ]
struct PendingAdd {
  uint16_t offset = 0;
  IncrementType type = IncrementType::none;
  uint8_t zeros[5] = {};
  std::byte delta[kMaxIncrementBytes] = {};

  uint32_t end() const { return offset + increment_bytes(type); }
};
static_assert(sizeof(PendingAdd) == 16);

}  // namespace atolldb
