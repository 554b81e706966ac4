// memcpy for small copies: fields, keys and rows.
#pragma once

#include <cstddef>
#include <cstring>

#include "shared/base/check.h"

namespace atolldb {

namespace detail {
/// Copies `bytes` bytes by two moves of kPart bytes, which may overlap. Loads both parts before it
/// stores them. REQUIRES: `bytes` is in [kPart, 2 * kPart].
template <size_t kPart>
inline void copy_two(void* to, const void* from, size_t bytes) {
  struct Part {
    unsigned char bytes[kPart];
  };
  DCHECK(bytes >= kPart && bytes <= 2 * kPart);
  Part first;
  Part last;
  std::memcpy(&first, from, kPart);
  std::memcpy(&last, static_cast<const unsigned char*>(from) + bytes - kPart, kPart);
  std::memcpy(to, &first, kPart);
  std::memcpy(static_cast<unsigned char*>(to) + bytes - kPart, &last, kPart);
}
}  // namespace detail

/// Does the same as std::memcpy, but without a function call for up to 128 bytes. A transaction
/// makes some hundred copies, and most of them have a few words or a row. `bytes` may be 0.
inline void copy_bytes(void* to, const void* from, size_t bytes) {
  DCHECK(bytes == 0 || (to != nullptr && from != nullptr));
  if (bytes >= 16) {
    if (bytes <= 32) return detail::copy_two<16>(to, from, bytes);
    if (bytes <= 64) return detail::copy_two<32>(to, from, bytes);
    if (bytes <= 128) return detail::copy_two<64>(to, from, bytes);
    std::memcpy(to, from, bytes);
    return;
  }
  if (bytes >= 8) return detail::copy_two<8>(to, from, bytes);
  if (bytes >= 4) return detail::copy_two<4>(to, from, bytes);
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < bytes; ++i) out[i] = in[i];
}

}  // namespace atolldb
