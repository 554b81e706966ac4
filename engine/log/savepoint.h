// The savepoint: the coordinator's durable state outside the logs. It lists the incarnations with
// their loggers and cuts, the newest snapshot, and the pinned and kept ones (R28, R29, R37, R38).
//
// data_dir/coordinator/savepoint has two slots of kSavepointSlotBytes. A write overwrites the older
// slot and syncs it. So one slot is always intact, and after a crash during a write the state
// before that write is still there. A rename creates the file with its first slot already written.
//
// The savepoint names directories by their roles (R48), which data_dir/directories resolves
// (directory_table.h). Versions 1 to 3 name paths; they are read but no longer written. Version 5
// names the scheme of durability. A savepoint of the scheme `gleaned` has version 4, so that older
// programs can read it.
//
//   slot: [magic 4][crc 4][version 4][length 4][generation 8][ddl records 8] body of `length` bytes
//   crc: CRC32C of bytes [8, 32 + length). All numbers are little-endian.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/hooks/mutants.h"
#include "engine/log/log_writer.h"
#include "shared/base/check.h"
#include "shared/base/durability_scheme.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// A slot has room for all pins and for 80,000 loggers with roles of 7 bytes. The savepoint drops
/// an incarnation from its list when the newest snapshot and all kept ones have its commits (R55).
inline constexpr uint64_t kSavepointSlotBytes = uint64_t{1} << 20;
static_assert(kSavepointSlotBytes % kIoBlockBytes == 0);
/// Maximum length of the directory of a logger.
inline constexpr uint32_t kMaxLogPathBytes = 4095;
inline constexpr uint32_t kMaxPinnedSnapshots = 64;
inline constexpr uint32_t kMaxPinNameBytes = 255;
/// Pins with this prefix belong to a backup in progress. They also keep the log after their
/// snapshot (R65). Users cannot make such pins.
inline constexpr std::string_view kBackupPinPrefix = "atoll-backup-";
/// Names of pins of exports begin with this. Exports of checkpoints pin as backups do, so their
/// pins have kBackupPinPrefix before it.
inline constexpr std::string_view kExportPinPrefix = "atoll-export-";
/// Older snapshots are not kept if the log after them belongs to more incarnations than this.
inline constexpr size_t kMaxListedIncarnations = 64;

struct LoggerPlace {
  uint16_t node = 0;
  uint16_t logger = 0;    // number of the logger in its node
  std::string directory;  // the log files are in its subfolder node<k>/

  bool operator==(const LoggerPlace&) const = default;
};

struct Incarnation {
  uint64_t number = 0;
  uint64_t start_epoch = 0;
  std::optional<uint64_t> cut_epoch;  // none: still running, or no start-up has found the cut yet
  std::vector<LoggerPlace> loggers;   // all loggers of the incarnation

  bool operator==(const Incarnation&) const = default;
};

/// A pin: keeps a snapshot under a unique name. A user or a backup has made it.
struct PinnedSnapshot {
  uint32_t id = 0;
  uint64_t epoch = 0;
  std::string name;  // 1 to kMaxPinNameBytes bytes, unique among the pins

  bool is_of_backup() const { return name.starts_with(kBackupPinPrefix); }
  bool operator==(const PinnedSnapshot&) const = default;
};

/// An older snapshot that a start-up may use instead of the newest one. The log after this snapshot
/// is kept, too (R55).
struct KeptSnapshot {
  uint32_t id = 0;
  uint64_t epoch = 0;

  bool operator==(const KeptSnapshot&) const = default;
};

struct Savepoint {
  uint64_t generation = 0;  // counts the writes of the savepoint; 0: never written
  ClusterUuid cluster_uuid = {};
  /// The scheme of the data directory. With `silor`, all snapshots of this structure are
  /// checkpoints (R98): `snapshot` is the id of the newest one, and `snapshot_epoch` the epoch
  /// before its replay epoch. Then `kept` is empty.
  DurabilityScheme scheme = DurabilityScheme::gleaned;
  /// The largest epoch seen in any log, except for epochs of the last incarnation if it has no cut.
  uint64_t largest_epoch = 0;
  /// The largest number given to an incarnation, even if that incarnation never ran.
  uint64_t largest_incarnation = 0;
  /// The largest epoch that the last incarnation is known to have made durable (R30). 0: unknown.
  uint64_t durable_epoch = 0;
  /// The newest complete snapshot. 0: none. It has every commit up to its epoch.
  uint32_t snapshot = 0;
  uint64_t snapshot_epoch = 0;
  /// The largest id given to a snapshot, even to one that failed. No id is given twice (R37).
  uint32_t largest_snapshot = 0;
  /// Number of DDL records known to be durable. A DDL log with fewer is damaged, not torn (R52).
  uint64_t ddl_records = 0;
  std::vector<PinnedSnapshot> pinned;  // at most kMaxPinnedSnapshots
  /// Kept snapshots, all older than the newest one, ascending.
  std::vector<KeptSnapshot> kept;
  /// Incarnations up to this number are no longer in `incarnations`. All their records up to their
  /// cuts are in the newest snapshot and in all kept ones.
  uint64_t covered_incarnation = 0;
  std::vector<Incarnation> incarnations;  // ascending; only the last one may lack a cut

  /// Returns the epoch of the oldest snapshot among the newest, the kept ones, and those that a
  /// backup has pinned. The log after that epoch is still needed (R55, R65).
  uint64_t oldest_epoch() const {
    CHECK(kept.empty() || kept.front().epoch <= snapshot_epoch);
    uint64_t oldest = kept.empty() ? snapshot_epoch : kept.front().epoch;
    for (const PinnedSnapshot& pin : pinned) {
      if (pin.is_of_backup() && !fault::forget_pinned_log) oldest = std::min(oldest, pin.epoch);
    }
    return oldest;
  }
  bool has_backup_pins() const {
    return std::ranges::any_of(pinned, &PinnedSnapshot::is_of_backup);
  }
  /// Returns the last incarnation if it has no cut, or null.
  const Incarnation* uncut() const;
  bool operator==(const Savepoint&) const = default;
};

struct SavepointRead {
  Savepoint savepoint;
  /// The reason why the slot that was not used is damaged, for example a torn write. Empty if that
  /// slot is intact or was never written.
  std::string damaged_slot;
};

struct SavepointSlot {
  std::optional<Savepoint> savepoint;
  std::string damage;  // damage of the slot; empty: none, or the slot was never written
};

/// Reads both slots of a file, in file order. A missing file has two slots that were never written.
Result<std::array<SavepointSlot, 2>> read_savepoint_slots(FileSystem& file_system,
                                                          const std::string& path);

/// Reads the newest intact slot. Returns nothing if the file is missing.
/// Error: code corruption, with file and reasons, if neither slot has a savepoint.
Result<std::optional<SavepointRead>> read_savepoint(FileSystem& file_system,
                                                    const std::string& data_dir);

/// Does the same as `read_savepoint`, for a file at `path`.
Result<std::optional<SavepointRead>> read_savepoint_file(FileSystem& file_system,
                                                         const std::string& path);

/// Writes the savepoint durably and adds 1 to `savepoint.generation`. After an error of a write or
/// sync the caller must read the savepoint again before the next write.
/// REQUIRES: `savepoint.generation` is that of the newest slot (0: there is none); no other thread
/// or process writes.
/// Error: code resources if the savepoint is too large for a slot.
Result<void> write_savepoint(FileSystem& file_system, const std::string& data_dir,
                             Savepoint& savepoint);

std::string savepoint_path(const std::string& data_dir);

}  // namespace atolldb
