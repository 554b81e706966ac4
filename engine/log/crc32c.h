// The checksum of everything that is durable: CRC32C (Castagnoli), as defined by RFC 3720.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/log/log_block.h"
#include "shared/check.h"

namespace atolldb {

/// CRC32C of up to 2 GiB; of nothing: 0.
inline uint32_t crc32c(std::span<const std::byte> bytes) {
  DCHECK(bytes.size() <= INT32_MAX);
  // The library neither inverts the start value nor the result, and takes no pointer to const.
  auto* first = const_cast<std::byte*>(bytes.data());
  return ~crc32_iscsi(reinterpret_cast<unsigned char*>(first), static_cast<int>(bytes.size()), ~0u);
}

/// What a block's `crc` must be. Its length is within kLogBlockPayload.
inline uint32_t crc_of(const LogBlock& block) {
  constexpr size_t kFirst = offsetof(LogBlockHeader, incarnation);
  const auto* bytes = reinterpret_cast<const std::byte*>(&block);
  return crc32c({bytes + kFirst, sizeof(LogBlockHeader) - kFirst + block.header.length});
}

}  // namespace atolldb
