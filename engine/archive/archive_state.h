// The cluster's knowledge of its archive's content (R72): data_dir/coordinator/archive_state. It
// decides which log files must be kept. It is in data_dir, because the archive may be out of reach.
//
// The state is written after each stored record. Before a record is stored in the archive, it is
// written to data_dir/coordinator/archive_record. So after a crash the same record is stored again,
// under the same number, before any other one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/archive/archive_format.h"
#include "engine/log/savepoint.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Names a log stream: incarnation, node, logger.
using ArchiveStream = std::tuple<uint64_t, uint32_t, uint32_t>;

struct StreamProgress {
  uint32_t ordinal = 0;      // ordinal of the last archived file
  uint64_t reach_epoch = 0;  // reach_epoch of the last archived file

  bool operator==(const StreamProgress&) const = default;
};

/// An incarnation whose log is not completely archived.
struct PendingIncarnation {
  ArchivedIncarnation incarnation;
  bool is_recorded = false;      // a stored record has the incarnation
  bool is_cut_recorded = false;  // a stored record has its cut

  bool operator==(const PendingIncarnation&) const = default;
};

/// Maximum number of targets in ArchiveState::begun. The oldest ones are removed first.
inline constexpr size_t kMaxBegunArchives = 32;

struct ArchiveState {
  ArchiveIdentity identity;
  std::string target;            // directory or command that stores the archive's files
  uint64_t records = 0;          // number of the last stored record
  uint64_t ddl_records = 0;      // number of DDL records in the stored records
  uint64_t last_time_epoch = 0;  // epoch of the last EpochTime in the stored records
  /// Epoch up to which the archive has every commit that counts, since the archive began. 0: none.
  uint64_t archived_epoch = 0;
  uint64_t history = 0;  // history number of the next new incarnation
  /// Targets whose directory has had the identity of an archive of these data. If the identity is
  /// missing now, the directory is the mount point of a device that is not mounted.
  std::vector<std::string> begun;
  std::vector<PendingIncarnation> incarnations;     // ascending by number
  std::map<ArchiveStream, StreamProgress> streams;  // streams of `incarnations`

  /// Returns whether the archive has the file, and all files of its stream before it.
  bool is_archived(uint32_t node, const LogFileName& log) const;
  /// Returns the incarnation, or null if its log need not be archived.
  const PendingIncarnation* find(uint64_t incarnation) const;
  /// Returns whether the archive needs a log file that it does not have (R72).
  bool lacks(uint32_t node, const LogFileName& log) const;

  /// Adds the incarnations and cuts of the savepoint that this state does not have yet. Returns
  /// whether the state has changed.
  bool add(const Savepoint& savepoint);
  /// Sets the cut of each incarnation that has none and that `savepoint` does not list. The cut is
  /// the epoch that the archived log of the incarnation reaches. The incarnation has no later
  /// commits, because a start-up's savepoint lists every incarnation that has (R29). Exception: if
  /// nothing was archived meanwhile, later commits may exist. The base epoch of the next
  /// incarnation then shows the gap. Returns whether the state has changed. REQUIRES: `savepoint`
  /// has the cuts of this start-up.
  bool end_unlisted(const Savepoint& savepoint);
  bool has_begun(const std::string& at) const;
  /// Adds the target to `begun`. REQUIRES: `begun` does not have it.
  void note_begun(const std::string& at);
  /// Applies a stored record. REQUIRES: its number is the next one, and it is of this archive.
  void apply(const ArchiveRecord& record);
  /// Replaces the incarnations by those of `other`. Incarnations that both states have keep their
  /// streams, and their flags is_recorded and is_cut_recorded.
  void take_incarnations(const ArchiveState& other);
  /// Removes an incarnation whose whole log is archived. REQUIRES: its cut is recorded.
  void remove(uint64_t incarnation);

  bool operator==(const ArchiveState&) const = default;

 private:
  void sort_incarnations();
  /// Returns the epoch that all streams of the incarnation reach; at least its start epoch - 1.
  uint64_t reach_of(const ArchivedIncarnation& incarnation) const;
  void update_archived_epoch();
};

/// Returns the path of the state: data_dir/coordinator/archive_state.
std::string archive_state_path(const std::string& data_dir);
/// Returns the path of the record that is being stored: data_dir/coordinator/archive_record.
std::string pending_record_path(const std::string& data_dir);
/// Returns data_dir/coordinator/archive_identity, from which the archive's identity.json is copied.
std::string pending_identity_path(const std::string& data_dir);

/// Reads the state. Returns nothing if there is none, or code corruption if the state is damaged.
Result<std::optional<ArchiveState>> read_archive_state(FileSystem& file_system,
                                                       const std::string& data_dir);

/// Writes the state. It is durable on return.
Result<void> write_archive_state(FileSystem& file_system, const std::string& data_dir,
                                 const ArchiveState& state);

}  // namespace atolldb
