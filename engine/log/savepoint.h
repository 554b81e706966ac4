// What the coordinator must know of a data directory besides its logs: which incarnations there
// were, with which loggers, and where each was cut; which snapshot is the newest, and which are
// pinned (design: durability, stratified snapshots; rules R28, R29, R37, R38).
//
// data_dir/coordinator/savepoint has two slots of kSavepointSlotBytes. A write goes to the older
// one and is synced; so one intact slot is always there, and a crash amid a write leaves the state
// before it. The file appears with its first slot written, by a rename.
//
// Directories are named by their roles (rule R48), which data_dir/directories resolves
// (directory_table.h). Versions 1 to 3 have paths instead; they are read, and no more written.
//
//   slot: [magic 4][crc 4][version 4][length 4][generation 8][ddl records 8] body of `length` bytes
//   crc: CRC32C of bytes [8, 32 + length). All numbers are little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Room, besides the pins, for 80,000 loggers whose roles have 7 bytes. A start lists its own
/// incarnation alone: all earlier ones are in a snapshot by then, or have committed nothing.
inline constexpr uint64_t kSavepointSlotBytes = uint64_t{1} << 20;
static_assert(kSavepointSlotBytes % kIoBlockBytes == 0);
/// Of the directory of a logger.
inline constexpr uint32_t kMaxLogPathBytes = 4095;
inline constexpr uint32_t kMaxPinnedSnapshots = 64;
inline constexpr uint32_t kMaxPinNameBytes = 255;
/// Older snapshots are not kept if their log is that of more incarnations.
inline constexpr size_t kMaxListedIncarnations = 64;

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

/// A user keeps this snapshot, by a name of its own.
struct PinnedSnapshot {
  uint32_t id = 0;
  uint64_t epoch = 0;
  std::string name;  // 1 to kMaxPinNameBytes; no other pin has it

  bool operator==(const PinnedSnapshot&) const = default;
};

/// An older snapshot that a start may use instead of the newest one, with the log behind it (R55).
struct KeptSnapshot {
  uint32_t id = 0;
  uint64_t epoch = 0;

  bool operator==(const KeptSnapshot&) const = default;
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
  /// The newest complete snapshot; 0: none. It has every commit up to its epoch.
  uint32_t snapshot = 0;
  uint64_t snapshot_epoch = 0;
  /// The largest id given to a snapshot, also to one that failed: no id is given twice (R37).
  uint32_t largest_snapshot = 0;
  /// So many records of the DDL log are known to be durable: fewer are damage, not a torn tail.
  uint64_t ddl_records = 0;
  std::vector<PinnedSnapshot> pinned;  // at most kMaxPinnedSnapshots
  /// Older than the newest one, ascending.
  std::vector<KeptSnapshot> kept;
  /// Incarnations up to this number have left the list: all that counts of them, if anything, is in
  /// the newest snapshot and in all that are kept.
  uint64_t covered_incarnation = 0;
  std::vector<Incarnation> incarnations;  // ascending; only the last one may lack a cut

  /// The epoch of the oldest of the newest snapshot and those that are kept: later log is needed.
  uint64_t oldest_epoch() const { return kept.empty() ? snapshot_epoch : kept.front().epoch; }
  /// The last incarnation if it has no cut; else null.
  const Incarnation* uncut() const;
  bool operator==(const Savepoint&) const = default;
};

struct SavepointRead {
  Savepoint savepoint;
  /// Why the other slot does not count: it was never written (empty), or a crash tore it, or worse.
  std::string damaged_slot;
};

struct SavepointSlot {
  std::optional<Savepoint> savepoint;
  std::string damage;  // why it has none; empty: it was never written
};

/// Both slots of a file, as they are, in the order of the file. The file's absence: two slots that
/// were never written.
Result<std::array<SavepointSlot, 2>> read_savepoint_slots(FileSystem& file_system,
                                                          const std::string& path);

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
