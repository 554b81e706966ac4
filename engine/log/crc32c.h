// The checksum of everything that is durable: CRC32C (Castagnoli), as defined by RFC 3720.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "shared/check.h"

namespace atolldb {

/// CRC32C of up to 2 GiB that follow what has the CRC32C `before`; of nothing: 0.
inline uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0) {
  DCHECK(bytes.size() <= INT32_MAX);
  // The library neither inverts the start value nor the result, and takes no pointer to const.
  auto* first = const_cast<std::byte*>(bytes.data());
  return ~crc32_iscsi(reinterpret_cast<unsigned char*>(first), static_cast<int>(bytes.size()),
                      ~before);
}

}  // namespace atolldb
