// Log blocks: the unit of log files and of the workers' log buffers, so that loggers write buffers
// without conversion (R26, R29, R30).
//
// A file is a sequence of blocks of 4 KiB. Block 0 is a `file_header`. Blocks of records follow,
// epoch by epoch, and one `marker` closes each epoch: all its records, and those of earlier epochs,
// lie before it. Epochs without a commit on any node have no marker. After the last marker the file
// holds zeros or the torn tail of a crash. A block holds records of one worker and one epoch, and a
// record does not cross blocks. All records of a transaction have one epoch, so they are complete
// if the epoch's marker is there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/format/crc32c.h"
#include "engine/format/log_record.h"
#include "shared/base/check.h"
#include "shared/file/file.h"

namespace atolldb {

using ClusterUuid = std::array<uint8_t, 16>;

inline constexpr uint32_t kLogBlockBytes = kIoBlockBytes;
inline constexpr uint32_t kLogBlockMagic = 0x474c5441;  // "ATLG"
inline constexpr uint8_t kLogFormatVersion = 2;

enum class LogBlockType : uint8_t {
  none = 0,         // zeros: never written
  file_header = 1,  // payload: LogFileHeader
  records = 2,      // payload: LogRecords, each a multiple of 8 bytes
  marker = 3,       // no payload: closes `epoch`
};

///   0      4      8            16         24      32              40       44
///   [magic][crc  ][incarnation][sequence ][epoch ][durable epoch ][length ][file ordinal]
///   48    50      52      54    55       56       64
///   [node][logger][worker][type][version][last epoch before] payload of `length` bytes, then
///   unused bytes
///
/// The worker fills epoch, length (committed records only), worker and type. The logger fills the
/// other fields.
struct LogBlockHeader {
  uint32_t magic;
  /// On disk: CRC32C of the payload, then of header bytes [8, 64). In a buffer: CRC32C of the
  /// payload once the block is sealed (seal_block), undefined before.
  uint32_t crc;
  uint64_t incarnation;
  uint64_t sequence;  // number of the block in its logger's stream; file headers count, too
  uint64_t epoch;     // the records' epoch; marker: the closed one; file header: see LogFileHeader
  uint64_t durable_epoch;  // the cluster's durable epoch known when the block was written (R29)
  uint32_t length;         // bytes of payload
  uint32_t file_ordinal;   // number of the file in the logger's stream, from 0
  uint16_t node;
  uint16_t logger;  // number within the node
  uint16_t worker;  // number within the node; 0 for markers and file headers
  LogBlockType type;
  uint8_t version;
  /// File header: the last epoch of any block before this one, which may be an epoch that is not
  /// closed yet. In file 0 it equals `epoch`. Other blocks: 0.
  uint64_t last_epoch_before;
};
static_assert(sizeof(LogBlockHeader) == 64);

inline constexpr uint32_t kLogBlockPayload = kLogBlockBytes - sizeof(LogBlockHeader);

struct LogBlock {
  LogBlockHeader header;
  std::byte payload[kLogBlockPayload];
};
static_assert(sizeof(LogBlock) == kLogBlockBytes);

/// Payload of block 0. The block's `epoch` is the last epoch that the previous file closed, so a
/// reader notices a missing file. In file 0 it is the incarnation's start epoch - 1. The block's
/// `last_epoch_before` shows whether a snapshot has all records of missing previous files (R38).
struct LogFileHeader {
  uint64_t file_bytes;   // preallocated size, a multiple of kLogBlockBytes
  uint64_t start_epoch;  // the incarnation's first epoch
  uint8_t cluster_uuid[16];
};
static_assert(sizeof(LogFileHeader) == 32);

// The checksum of a block: CRC32C of the payload, then of the header after the checksum field. The
// payload comes first so that two threads can share the work. The worker that finishes a block
// *seals* it: it stores the checksum of the payload, which its caches still hold. The logger, on
// another core, fills in its header fields and continues the checksum over the header alone. The
// logger reads a payload only in the one block that it copies, because that block's worker has not
// sealed it yet.

/// The header part of the checksum begins at this offset.
inline constexpr uint32_t kChecksumEnd = offsetof(LogBlockHeader, incarnation);

/// REQUIRES: the length is at most kLogBlockPayload.
inline uint32_t payload_crc_of(const LogBlock& block) {
  DCHECK(block.header.length <= kLogBlockPayload);
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
inline void seal_block(LogBlock& block) {
  DCHECK(block.header.length % 8 == 0);
  block.header.crc = payload_crc_of(block);
}

/// Calls `visit(const LogRecord&)` for each record, fillers included. `visit` may read only type
/// and length of a filler. REQUIRES: defect_of_records returns nothing for the block.
template <typename Visit>
void for_each_record(const LogBlock& block, Visit visit) {
  for (uint32_t offset = 0; offset < block.header.length;) {
    const auto& record = *reinterpret_cast<const LogRecord*>(block.payload + offset);
    DCHECK(record.length >= kMinLogRecordBytes && record.length % 8 == 0);
    DCHECK(record.length <= block.header.length - offset);
    visit(record);
    offset += record.length;
  }
}

}  // namespace atolldb
