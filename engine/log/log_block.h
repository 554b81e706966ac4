// Blocks: what log files consist of, and how workers lay out their buffers, so that loggers write
// them as they are (design: durability; rules R26, R29, R30).
//
// A file is a sequence of blocks of 4 KiB. Block 0 is a `file_header`; then, epoch by epoch, blocks
// of records and one `marker` that closes the epoch: everything of it and of earlier ones is
// before. Epochs without a commit anywhere have no marker. What follows the last marker is zeros,
// or the torn tail of a crash. One block holds records of one worker and one epoch; records do not
// cross blocks. A transaction's records are in one epoch, hence whole when its marker is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/log/log_record.h"
#include "shared/file/file.h"

namespace atolldb {

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
/// The worker fills epoch, length (which counts committed records only), worker and type, the
/// logger the rest.
struct LogBlockHeader {
  uint32_t magic;
  /// On disk: CRC32C of the payload, then of header bytes [8, 64). In a buffer: of the payload,
  /// once the block is sealed (block_checksum.h); until then it means nothing.
  uint32_t crc;
  uint64_t incarnation;
  uint64_t sequence;  // of the block in its logger's stream, over its files; file headers count
  uint64_t epoch;     // of its records; marker: the one it closes; file header: see there
  uint64_t durable_epoch;  // the global one known when the block was written (R29)
  uint32_t length;         // bytes of payload
  uint32_t file_ordinal;   // within the logger's stream, from 0
  uint16_t node;
  uint16_t logger;  // within the node
  uint16_t worker;  // within the node; 0 for markers and file headers
  LogBlockType type;
  uint8_t version;
  /// File header: the last epoch of any block before it, which may be one that is not closed yet;
  /// file 0: as `epoch`. Else 0.
  uint64_t last_epoch_before;
};
static_assert(sizeof(LogBlockHeader) == 64);

inline constexpr uint32_t kLogBlockPayload = kLogBlockBytes - sizeof(LogBlockHeader);

struct LogBlock {
  LogBlockHeader header;
  std::byte payload[kLogBlockPayload];
};
static_assert(sizeof(LogBlock) == kLogBlockBytes);

/// Payload of block 0. Its block's `epoch` is the last epoch that the predecessor file closed
/// (file 0: the incarnation's start epoch - 1), so a missing file is noticed. Its block's
/// `last_epoch_before` tells whether all that missing predecessors held is in a snapshot (R38).
struct LogFileHeader {
  uint64_t file_bytes;   // preallocated size, a multiple of kLogBlockBytes
  uint64_t start_epoch;  // of the incarnation
  uint8_t cluster_uuid[16];
};
static_assert(sizeof(LogFileHeader) == 32);

}  // namespace atolldb
