// What a coordinator does with a data directory, from its lock to the first commit (design:
// durability; rules R28-R30). REQUIRES throughout: the lock of the data directory, and none of the
// processes that wrote to it before lives.
//
//   examine            reads all there is; damage is refused, nothing is changed
//   store_cut          the last incarnation's cut, and the next one's number, durably
//   (recovery)         a snapshot of recovery_epoch from what is to be gleaned
//   (savepoint_snapshots.h) (loggers)          make their first files: LogWriter::create with that
//   number and start epoch begin_incarnation  the savepoint lists the loggers: from now on commits
//   may be accepted
//
// A crash between any two of these leaves what the next start can work with.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/gleaner/glean_plan.h"
#include "engine/log/ddl_log.h"
#include "engine/log/log_scan.h"
#include "engine/log/savepoint.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// What a start does with what it cannot read of logs and of the newest snapshot.
enum class Damage : uint8_t {
  refused,
  left_out,  // the epochs behind it, and the pages: a salvage
};

/// What store_cut is going to store; store_cut and begin_incarnation keep it what the file says.
struct LogStart {
  Savepoint savepoint;
  bool is_new = false;       // the directory has held no cluster's data yet
  std::string damaged_slot;  // of the savepoint, which its other slot replaces; to be logged
  std::optional<SnapshotMetadata> snapshot;  // the newest complete one
  /// The streams of all incarnations that hold records in (snapshot epoch, their cut]: what
  /// recovery must glean. Ascending by incarnation.
  std::vector<GleanStream> to_glean;
  /// D of R32: what is committed, all of it in epochs up to this one; 0: nothing ever ran.
  uint64_t recovery_epoch = 0;
  std::vector<IncarnationScan> last;  // the incarnation that got its cut now, if any
  std::vector<DdlRecord>
      ddl;                   // not all durable before DdlLog::open: open it before their first use
  uint64_t incarnation = 0;  // the next one
  uint64_t start_epoch = 0;  // of the next one, above every epoch seen anywhere
  /// Why an older snapshot counts than the newest (R55); empty: the newest one does.
  std::string fallback;
  std::vector<std::string> left_out;  // Damage::left_out: what of the logs and files, and why
};

/// `directories`: all that the nodes are configured to have; those of the savepoint are known.
/// Code corruption names file, offset and reason, of the snapshot's files, too: each is there with
/// all its pages (their content is checked when they are read). A discard_data under way is code
/// failed. With Damage::left_out a damaged log is cut where all logs of its incarnation are intact,
/// and all later incarnations are left out: what counts is a prefix of what was committed. Damaged
/// savepoints and DDL logs are refused all the same.
///
/// If the newest snapshot's metadata or files are damaged, and one that is kept is intact with all
/// the log behind it, that one counts (R55), and `fallback` says why.
Result<LogStart> examine(FileSystem& file_system, const std::string& data_dir,
                         const std::vector<std::string>& directories = {},
                         Damage damage = Damage::refused);

/// A log file of an incarnation that the savepoint does not list may have a header (its start was
/// given up), but no more unless a snapshot covers the incarnation: code corruption. One of another
/// cluster: code failed. Part of examine; for tools, too.
Result<void> refuse_unlisted(FileSystem& file_system, const Savepoint& savepoint,
                             const std::set<std::string>& directories);
/// data_dir, those of the savepoint's loggers, and `configured`.
std::set<std::string> log_directories(const Savepoint& savepoint, const std::string& data_dir,
                                      const std::vector<std::string>& configured);

/// What is to be gleaned behind the savepoint's snapshot, and up to which epoch. Part of examine; a
/// recovery asks again after a snapshot of a part. REQUIRES: every incarnation has its cut.
Result<void> collect_streams(FileSystem& file_system, LogStart& start);

/// Syncs what counts of the last incarnation's logs, which a killed process may have left unsynced;
/// then stores the cut, and that `start.incarnation` is taken. When nothing is to be gleaned, all
/// earlier incarnations leave the savepoint's list.
Result<void> store_cut(FileSystem& file_system, const std::string& data_dir, LogStart& start);

/// REQUIRES: store_cut, and each of the loggers has made its first file (an error if not).
Result<void> begin_incarnation(FileSystem& file_system, const std::string& data_dir,
                               LogStart& start, std::vector<LoggerPlace> loggers);

/// Notes in the savepoint, at an orderly stop, what is durable of the running incarnation: then
/// even damage to its very last epoch is told from a torn tail. REQUIRES: begin_incarnation, the
/// loggers have closed this epoch and write no more.
Result<void> store_durable_epoch(FileSystem& file_system, const std::string& data_dir,
                                 LogStart& start, uint64_t durable_epoch);

}  // namespace atolldb
