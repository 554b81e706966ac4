// The checksum of a log block: of its payload, then of its header behind the checksum itself.
//
// In this order, so that two take it: the worker that leaves a block *seals* it, with the checksum
// of the payload, while its caches hold that; the logger, on another core, stamps the header and
// goes on with that alone. It reads no payload but that of the one block that it copies, because
// its worker has not left it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/log/crc32c.h"
#include "engine/log/log_block.h"

namespace atolldb {

/// What the checksum of a header begins behind.
inline constexpr uint32_t kChecksumEnd = offsetof(LogBlockHeader, incarnation);

/// The length is within kLogBlockPayload.
inline uint32_t payload_crc_of(const LogBlock& block) {
  return crc32c({block.payload, block.header.length});
}

/// What a written block's `crc` must be, when its payload has `payload_crc`.
inline uint32_t crc_of(const LogBlock& block, uint32_t payload_crc) {
  const auto* header = reinterpret_cast<const std::byte*>(&block.header);
  return crc32c({header + kChecksumEnd, sizeof(LogBlockHeader) - kChecksumEnd}, payload_crc);
}

/// The same of any block. The length is within kLogBlockPayload.
inline uint32_t crc_of(const LogBlock& block) { return crc_of(block, payload_crc_of(block)); }

/// Nothing will be added to the payload.
inline void seal_block(LogBlock& block) { block.header.crc = payload_crc_of(block); }

}  // namespace atolldb
