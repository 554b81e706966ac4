// The checksum of a log block: CRC32C of the payload, then of the header after the checksum field.
//
// The payload comes first so that two threads can share the work. The worker that finishes a block
// *seals* it: it stores the checksum of the payload, which its caches still hold. The logger, on
// another core, stamps the header and continues the checksum with the header alone. It reads only
// the payload of the one block that it copies, because that block's worker has not sealed it yet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/format/crc32c.h"
#include "engine/format/log_block.h"

namespace atolldb {

/// The header part of the checksum begins at this offset.
inline constexpr uint32_t kChecksumEnd = offsetof(LogBlockHeader, incarnation);

/// REQUIRES: the length is at most kLogBlockPayload.
inline uint32_t payload_crc_of(const LogBlock& block) {
  return crc32c({block.payload, block.header.length});
}

/// Returns the value of `crc` in a written block whose payload has the checksum `payload_crc`.
inline uint32_t crc_of(const LogBlock& block, uint32_t payload_crc) {
  const auto* header = reinterpret_cast<const std::byte*>(&block.header);
  return crc32c({header + kChecksumEnd, sizeof(LogBlockHeader) - kChecksumEnd}, payload_crc);
}

/// Returns the value of `crc` in a written block. REQUIRES: the length is at most kLogBlockPayload.
inline uint32_t crc_of(const LogBlock& block) { return crc_of(block, payload_crc_of(block)); }

/// REQUIRES: no more bytes are added to the payload.
inline void seal_block(LogBlock& block) { block.header.crc = payload_crc_of(block); }

}  // namespace atolldb
