// What the coordinator must know of a data directory besides its logs: which incarnations there
// were, with which loggers, and where each was cut (design: durability; rules R28, R29).
//
// data_dir/coordinator/savepoint has two slots of kSavepointSlotBytes. A write goes to the older
// one and is synced; so one intact slot is always there, and a crash amid a write leaves the state
// before it. The file appears with its first slot written, by a rename.
//
//   slot: [magic 4][crc 4][version 4][length 4][generation 8][spare 8] body of `length` bytes
//   crc: CRC32C of bytes [8, 32 + length). All numbers are little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Room for 30,000 incarnations with the same loggers, or for 6,000 loggers with paths of 150
/// bytes.
inline constexpr uint64_t kSavepointSlotBytes = uint64_t{1} << 20;
static_assert(kSavepointSlotBytes % kIoBlockBytes == 0);
/// Of the directory of a logger.
inline constexpr uint32_t kMaxLogPathBytes = 4095;

struct LoggerPlace {
  uint16_t node = 0;
  uint16_t logger = 0;    // within the node
  std::string directory;  // its node<k>/ has the files

  bool operator==(const LoggerPlace&) const = default;
};

struct Incarnation {
  uint64_t number = 0;
  uint64_t start_epoch = 0;
  std::optional<uint64_t> cut_epoch;  // none: it runs, or its end has not been looked at yet
  std::vector<LoggerPlace> loggers;   // all there are

  bool operator==(const Incarnation&) const = default;
};

struct Savepoint {
  uint64_t generation = 0;  // of the slot; 0: not written yet
  ClusterUuid cluster_uuid = {};
  /// Every epoch seen in any log is at most this, but those of the last incarnation without a cut.
  uint64_t largest_epoch = 0;
  /// The largest number given to an incarnation, whether it came to run or not.
  uint64_t largest_incarnation = 0;
  /// What the last incarnation is known to have made durable (R30); 0: unknown.
  uint64_t durable_epoch = 0;
  std::vector<Incarnation> incarnations;  // ascending; only the last one may lack a cut

  /// The last incarnation if it has no cut; else null.
  const Incarnation* uncut() const;
  bool operator==(const Savepoint&) const = default;
};

struct SavepointRead {
  Savepoint savepoint;
  /// Why the other slot does not count: it was never written (empty), or a crash tore it, or worse.
  std::string damaged_slot;
};

/// Nothing if there is no savepoint. Both slots damaged: code corruption, with file and reasons.
Result<std::optional<SavepointRead>> read_savepoint(FileSystem& file_system,
                                                    const std::string& data_dir);

/// The same of a file elsewhere.
Result<std::optional<SavepointRead>> read_savepoint_file(FileSystem& file_system,
                                                         const std::string& path);

/// Durable when it returns; `savepoint.generation` becomes that of the slot. REQUIRES: its
/// generation is that of the newest slot (0: none), and no other thread or process writes. Too
/// large for a slot: code resources. After an error of a write or sync: read it again before the
/// next write.
Result<void> write_savepoint(FileSystem& file_system, const std::string& data_dir,
                             Savepoint& savepoint);

std::string savepoint_path(const std::string& data_dir);

}  // namespace atolldb
