// memcpy for small copies: fields, keys and rows.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "shared/base/check.h"

namespace atolldb {

namespace detail {
/// Copies `bytes` bytes by two moves of kPart bytes, which may overlap. Loads both parts before it
/// stores them. REQUIRES: `bytes` is in [kPart, 2 * kPart].
template <size_t kPart>
inline void copy_two(void* to, const void* from, size_t bytes) {
  static_assert(kPart <= 8);
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

inline __m128i load_vector(const void* from, size_t at) {
  return _mm_loadu_si128(
      reinterpret_cast<const __m128i*>(static_cast<const unsigned char*>(from) + at));
}
inline void store_vector(void* to, size_t at, __m128i vector) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<unsigned char*>(to) + at), vector);
}

// Each vector below is a variable of its own. GCC 12 would also store the vectors of a struct on
// the stack, where nothing reads them.

/// Copies 16 to 64 bytes by four moves, which may overlap. Takes no branch on the number of bytes,
/// because fields and rows have all lengths, so the processor could not predict it.
inline void copy_up_to_64(void* to, const void* from, size_t bytes) {
  DCHECK(bytes >= 16 && bytes <= 64);
  const size_t last = bytes - 16;
  const size_t second = std::min<size_t>(last, 16);
  const size_t third = last - second;
  const __m128i first_part = load_vector(from, 0);
  const __m128i second_part = load_vector(from, second);
  const __m128i third_part = load_vector(from, third);
  const __m128i last_part = load_vector(from, last);
  store_vector(to, 0, first_part);
  store_vector(to, second, second_part);
  store_vector(to, third, third_part);
  store_vector(to, last, last_part);
}

/// As copy_up_to_64, for 64 to 128 bytes.
inline void copy_up_to_128(void* to, const void* from, size_t bytes) {
  DCHECK(bytes >= 64 && bytes <= 128);
  const __m128i first = load_vector(from, 0);
  const __m128i second = load_vector(from, 16);
  const __m128i third = load_vector(from, 32);
  const __m128i fourth = load_vector(from, 48);
  const __m128i fifth = load_vector(from, bytes - 64);
  const __m128i sixth = load_vector(from, bytes - 48);
  const __m128i seventh = load_vector(from, bytes - 32);
  const __m128i eighth = load_vector(from, bytes - 16);
  store_vector(to, 0, first);
  store_vector(to, 16, second);
  store_vector(to, 32, third);
  store_vector(to, 48, fourth);
  store_vector(to, bytes - 64, fifth);
  store_vector(to, bytes - 48, sixth);
  store_vector(to, bytes - 32, seventh);
  store_vector(to, bytes - 16, eighth);
}
}  // namespace detail

/// Does the same as std::memcpy, but without a function call for up to 128 bytes. A transaction
/// makes some hundred copies, and most of them have a few words or a row. `bytes` may be 0.
inline void copy_bytes(void* to, const void* from, size_t bytes) {
  DCHECK(bytes == 0 || (to != nullptr && from != nullptr));
  if (bytes >= 16) {
    if (bytes <= 64) return detail::copy_up_to_64(to, from, bytes);
    if (bytes <= 128) return detail::copy_up_to_128(to, from, bytes);
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
