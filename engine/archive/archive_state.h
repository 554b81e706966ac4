// What an archive has, as the cluster knows it (R72): data_dir/coordinator/archive_state. It
// decides which log files must stay, so it is in data_dir: the archive may be out of reach.
//
// The state is written after each stored record. Before it is written, the record is in
// data_dir/coordinator/archive_record. So after a crash the same record is stored again, under the
// same number, before any other one.
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

/// Incarnation, node, logger.
using ArchiveStream = std::tuple<uint64_t, uint32_t, uint32_t>;

struct StreamProgress {
  uint32_t ordinal = 0;      // of the last archived file
  uint64_t reach_epoch = 0;  // see ArchivedFile

  bool operator==(const StreamProgress&) const = default;
};

/// An incarnation whose log is not completely archived.
struct PendingIncarnation {
  ArchivedIncarnation incarnation;
  bool is_recorded = false;      // a record has it
  bool is_cut_recorded = false;  // a record has its cut

  bool operator==(const PendingIncarnation&) const = default;
};

/// A state remembers so many directories in which an archive has begun, the last ones.
inline constexpr size_t kMaxBegunArchives = 32;

struct ArchiveState {
  ArchiveIdentity identity;
  std::string target;            // where the archive is; another one has other files
  uint64_t records = 0;          // number of the last stored record
  uint64_t ddl_records = 0;      // DDL records that the stored records have
  uint64_t last_time_epoch = 0;  // of the last EpochTime that they have
  /// The archive has every commit up to this epoch that counts, since it began. 0: none.
  uint64_t archived_epoch = 0;
  uint64_t history = 0;  // of the next new incarnation: see ArchivedIncarnation
  /// Targets whose directory has had the identity of an archive of these data. Without it, such a
  /// directory is the mount point of a device that is not mounted.
  std::vector<std::string> begun;
  std::vector<PendingIncarnation> incarnations;     // ascending by number
  std::map<ArchiveStream, StreamProgress> streams;  // of these incarnations

  /// Whether the archive has the file, and all files of its stream before it.
  bool is_archived(uint32_t node, const LogFileName& log) const;
  /// Returns the incarnation, or null if its log need not be archived.
  const PendingIncarnation* find(uint64_t incarnation) const;
  /// Whether the archive needs a log file that it does not have (R72).
  bool lacks(uint32_t node, const LogFileName& log) const;

  /// Adds the incarnations of the savepoint that are not known, and cuts that are not known.
  /// Returns whether something was new.
  bool add(const Savepoint& savepoint);
  /// Cuts every incarnation that has no cut and is not listed at the epoch that the archive
  /// reaches. At a start-up, the savepoint lists all others (R29), unless nothing was archived
  /// meanwhile. Then it may have had more commits, and the base epoch of the next one shows the
  /// gap. Returns whether something was new. REQUIRES: `savepoint` has the cuts of this start-up.
  bool end_unlisted(const Savepoint& savepoint);
  bool has_begun(const std::string& at) const;
  /// Adds the target to `begun`. REQUIRES: it is not there.
  void note_begun(const std::string& at);
  /// Adds a stored record. REQUIRES: its number is the next one, and it is of this archive.
  void apply(const ArchiveRecord& record);
  /// Takes exactly the incarnations of `other`. Keeps what is recorded of them, and their streams.
  void take_incarnations(const ArchiveState& other);
  /// Forgets an incarnation whose whole log is archived. REQUIRES: its cut is recorded.
  void remove(uint64_t incarnation);

  bool operator==(const ArchiveState&) const = default;

 private:
  void sort_incarnations();
  /// Returns the epoch that all streams of the incarnation reach, or its start epoch - 1.
  uint64_t reach_of(const ArchivedIncarnation& incarnation) const;
  void update_archived_epoch();
};

/// data_dir/coordinator/archive_state
std::string archive_state_path(const std::string& data_dir);
/// data_dir/coordinator/archive_record: the record that is being stored
std::string pending_record_path(const std::string& data_dir);
/// data_dir/coordinator/archive_identity: source of the archive's identity.json
std::string pending_identity_path(const std::string& data_dir);

/// Returns nothing if there is no state. Returns code corruption if it is damaged.
Result<std::optional<ArchiveState>> read_archive_state(FileSystem& file_system,
                                                       const std::string& data_dir);

/// Durable on return.
Result<void> write_archive_state(FileSystem& file_system, const std::string& data_dir,
                                 const ArchiveState& state);

}  // namespace atolldb
