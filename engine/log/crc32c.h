// The checksum of everything that is durable: CRC32C (Castagnoli), as defined by RFC 3720.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/log/log_block.h"
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

/// Of a block's payload, whose length is within kLogBlockPayload.
inline uint32_t crc_of_payload(const LogBlock& block) {
  return crc32c({block.payload, block.header.length});
}

/// The same of its header, which follows a payload that has the checksum `payload`.
inline uint32_t crc_of_header(const LogBlock& block, uint32_t payload) {
  const auto* header = reinterpret_cast<const std::byte*>(&block.header);
  return crc32c({header + kLogBlockCrcEnd, sizeof(LogBlockHeader) - kLogBlockCrcEnd}, payload);
}

/// What a written block's `crc` must be. Its length is within kLogBlockPayload.
inline uint32_t crc_of(const LogBlock& block) {
  return crc_of_header(block, crc_of_payload(block));
}

/// Nothing will be added to the block: `crc` is its payload's, for the logger to go on from.
inline void seal(LogBlock& block) { block.header.crc = crc_of_payload(block); }

}  // namespace atolldb
