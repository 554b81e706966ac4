// Keys of eight bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace atolldb::test {

/// Returns the number in big-endian order, so that keys are in the order of their numbers.
inline std::array<std::byte, 8> ordered_bytes(uint64_t number) {
  return std::bit_cast<std::array<std::byte, 8>>(__builtin_bswap64(number));
}

}  // namespace atolldb::test
