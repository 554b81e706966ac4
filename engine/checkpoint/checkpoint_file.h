// Format and names of checkpoint files: the records of ranges of keys, as of one instant per
// record. Source: [SILOR14] section 4.2.
//
//   <directory>/node<k>/checkpoint_<id>_<writer>_<number>.atcp
//
// A file is a sequence of blocks. The length of a block is a multiple of 4 KiB. Block 0 is a
// `file_header`, and all others have records. A block has the records of whole pages, in key order,
// so it is a contiguous part of a range. Unlike a block of the log, it may have records of several
// storages and epochs.
//
// Records have the format of the log. A record of an array, a Master-tree or a hash storage has the
// type `insert`, its VID and its whole payload. A record of a heap has the type `append`. Its
// payload_offset is its number among the records that have its VID and lie in its list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/format/log_block.h"
#include "engine/format/log_record.h"
#include "shared/file/file.h"

namespace atolldb {

inline constexpr uint32_t kCheckpointMagic = 0x50435441;  // "ATCP"
inline constexpr uint8_t kCheckpointFormatVersion = 1;
/// A writer writes a block at the first end of a page at which the payload has this size.
inline constexpr uint32_t kCheckpointBlockBytes = uint32_t{64} << 10;
/// Limit of a block. The rest is for the records of one page, which may share long prefixes of keys
/// that the page has only once.
inline constexpr uint32_t kMaxCheckpointBlockBytes = uint32_t{512} << 10;
/// A writer syncs its files whenever this many bytes are written and not synced. Fewer and larger
/// syncs would delay the loggers, which use the same devices. Source: [SILOR14] section 4.2.
inline constexpr uint64_t kCheckpointSyncBytes = uint64_t{32} << 20;
/// The bytes of one sync of at most 32 MiB are in about this many files, for any number of files of
/// the writer. If they were in all of its files, 30 files would need 30 syncs for the same bytes.
inline constexpr uint64_t kCheckpointFilesOfASync = 4;
/// Maximum bytes written to a file before the writer changes to the next file. The last block may
/// exceed it. It also limits how unequal the files are, and so how long a recovery waits for the
/// last reader.
inline constexpr uint64_t kCheckpointTurnBytes = kCheckpointSyncBytes / kCheckpointFilesOfASync;
/// A writer that pauses does so whenever it has written this many bytes.
inline constexpr uint64_t kCheckpointPauseBytes = kCheckpointSyncBytes;
/// A file begins with the least size.
inline constexpr FileGrowth kCheckpointGrowth = {.least = uint64_t{64} << 10,
                                                 .most = uint64_t{4} << 20};
static_assert(kIoBlockBytes <= kCheckpointGrowth.least);

enum class CheckpointBlockType : uint8_t {
  none = 0,
  file_header = 1,  // payload: CheckpointFileHeader
  records = 2,      // payload: LogRecords
};

///   0      4      8             16         24            32       36      40        44
///   [magic][crc  ][checkpoint  ][sequence ][replay epoch][length ][bytes ][records ][number ]
///   48    50       52    53       54       64
///   [node][writer ][type][version][ zeros ] payload of `length` bytes, then zeros
struct CheckpointBlockHeader {
  uint32_t magic;
  uint32_t crc;           // CRC32C of the whole block after this field
  uint64_t checkpoint;    // id of the checkpoint
  uint64_t sequence;      // number of the block in its file
  uint64_t replay_epoch;  // see CheckpointMetadata
  uint32_t length;        // bytes of payload
  uint32_t bytes;         // of the whole block, a multiple of kIoBlockBytes
  uint32_t records;
  uint32_t number;  // of the file among the files of its writer
  uint16_t node;
  uint16_t writer;  // number of the writer within its node
  CheckpointBlockType type;
  uint8_t version;
  uint8_t spare[10];
};
static_assert(sizeof(CheckpointBlockHeader) == 64);

/// The checksum of a block begins at this offset.
inline constexpr uint32_t kCheckpointChecked = offsetof(CheckpointBlockHeader, checkpoint);
inline constexpr uint32_t kMaxCheckpointPayload =
    kMaxCheckpointBlockBytes - sizeof(CheckpointBlockHeader);

/// Payload of block 0.
struct CheckpointFileHeader {
  ClusterUuid cluster_uuid;
};
static_assert(sizeof(CheckpointFileHeader) == 16);

struct CheckpointFileName {
  uint64_t checkpoint = 0;
  uint32_t writer = 0;
  uint32_t number = 0;

  bool operator==(const CheckpointFileName&) const = default;
};

/// Returns the name of the file, for example "checkpoint_3_0_2.atcp".
std::string to_string(const CheckpointFileName& name);
/// Returns nothing if `name` is not exactly the name that to_string writes.
std::optional<CheckpointFileName> parse_checkpoint_file_name(std::string_view name);
/// Returns "<directory>/node<k>/checkpoint_...".
std::string checkpoint_file_path(const std::string& directory, uint32_t node,
                                 const CheckpointFileName& name);

}  // namespace atolldb
