// Bytes as hex digits, for tests that compare them with fixed texts.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace atolldb::test {

inline std::string hex_of(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::byte byte : bytes) {
    hex += kDigits[static_cast<size_t>(byte) >> 4];
    hex += kDigits[static_cast<size_t>(byte) & 15];
  }
  return hex;
}

}  // namespace atolldb::test
