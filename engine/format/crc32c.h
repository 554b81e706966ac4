// CRC32C (Castagnoli), the checksum of all durable data, as defined by RFC 3720.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "shared/base/check.h"

namespace atolldb {

/// Returns the CRC32C of `bytes`, which follow data with the CRC32C `before`. The CRC32C of no
/// bytes is 0. REQUIRES: at most 2 GiB.
inline uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0) {
  DCHECK(bytes.size() <= INT32_MAX);
  // CRC32C inverts the start value and the result. crc32_iscsi does not, so this function does. The
  // parameter of crc32_iscsi is not const, although it only reads the bytes.
  auto* first = const_cast<std::byte*>(bytes.data());
  return ~crc32_iscsi(reinterpret_cast<unsigned char*>(first), static_cast<int>(bytes.size()),
                      ~before);
}

}  // namespace atolldb
