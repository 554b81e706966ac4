// The coordinator's start-up on a data directory, from the lock to the first commit (R28 to R30).
//
// REQUIRES for all functions: the lock of the data directory is held; no process that wrote to the
// directory before is alive.
//
//   examine             reads everything; refuses damage; changes nothing
//   store_cut           stores the last cut and the next incarnation's number, durably
//   (recovery)          makes a snapshot of recovery_epoch (savepoint_snapshots.h)
//   (loggers)           create their first files with that number: LogWriter::create
//   begin_incarnation   lists the loggers in the savepoint; commits may be accepted from now on
//
// The next start-up can continue after a crash between any two of these steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/log/ddl_log.h"
#include "engine/log/log_scan.h"
#include "engine/log/savepoint.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/error.h"
#include "shared/base/run_tasks.h"
#include "shared/file/file.h"

namespace atolldb {

/// Treatment of damage to logs and to the newest snapshot.
enum class Damage : uint8_t {
  refused,
  left_out,  // a salvage: damaged pages, and the epochs after the damage, are omitted
};

/// The result of `examine`: the state that store_cut stores. store_cut and begin_incarnation keep
/// `savepoint` equal to the file.
struct LogStart {
  Savepoint savepoint;
  bool is_new = false;       // the directory has held no data of a cluster yet
  std::string damaged_slot;  // why one slot of the savepoint is damaged, to be logged; or empty
  std::optional<SnapshotMetadata> snapshot;  // the newest complete snapshot
  /// Scheme `silor`: the newest checkpoint, if there is one. `snapshot` is empty then.
  std::optional<CheckpointMetadata> checkpoint;
  /// The streams that recovery must read, ascending by incarnation. Each has records after the
  /// snapshot's epoch (from the checkpoint's replay epoch on), up to the cut of its incarnation.
  std::vector<PlannedStream> streams_to_read;
  /// The epoch D of R32: all committed epochs are at most this one. 0: no incarnation ever ran.
  uint64_t recovery_epoch = 0;
  /// The incarnation whose cut this start-up has determined, or empty.
  std::vector<IncarnationScan> last;
  std::vector<DdlRecord> ddl;  // may not be durable: call DdlLog::open before the first use
  uint64_t incarnation = 0;    // number of the next incarnation
  uint64_t start_epoch = 0;    // first epoch of the next incarnation, above every epoch in any file
  /// Why the start-up uses an older snapshot (R55). Empty: it uses the newest one.
  std::string fallback;
  std::vector<std::string> left_out;  // Damage::left_out: what was omitted, and why
};

/// Reads savepoint, DDL log, logs and snapshot metadata, and decides which of them the start-up
/// uses. `directories`: all configured directories of the nodes. The function adds those that the
/// savepoint names.
///
/// The function checks that each snapshot file is there with all its pages. Readers verify the
/// content of the pages.
/// Errors: code corruption, with file, offset and reason, for damage to these files. Code failed if
/// a discard_data is in progress, or if a directory has logs of another cluster. Code resources if
/// all epochs are used up.
///
/// With Damage::left_out, the first damaged log is cut at the last epoch that all logs of its
/// incarnation have intact. All later incarnations are omitted. So the result is a prefix of what
/// was committed. Damaged savepoints and DDL logs are refused even then. So is damage to a
/// checkpoint, or to the log up to its end epoch.
///
/// If the newest snapshot's metadata or files are damaged, the start-up uses a kept snapshot (R55).
/// That snapshot, and all log after it, must be intact. `fallback` has the reason.
///
/// `run` may read several logs at the same time. Neither result nor error depends on that.
Result<LogStart> examine(FileSystem& file_system, const std::string& data_dir,
                         const std::vector<std::string>& directories = {},
                         Damage damage = Damage::refused, const RunTasks& run = run_in_turn);

/// Checks the log files of incarnations that the savepoint does not list. A failed start-up may
/// have left a file with at most a header. A file with more blocks is allowed only if a snapshot
/// covers its incarnation. `examine` and tools call this function. Errors: code corruption for any
/// other file with more blocks; code failed for a file of another cluster.
Result<void> refuse_unlisted(FileSystem& file_system, const Savepoint& savepoint,
                             const std::set<std::string>& directories);
/// Returns data_dir, the directories of the savepoint's loggers, and `configured`.
std::set<std::string> log_directories(const Savepoint& savepoint, const std::string& data_dir,
                                      const std::vector<std::string>& configured);

/// Sets `streams_to_read` and `recovery_epoch`, for the log after the savepoint's snapshot.
/// `examine` calls this function. A recovery calls it again after a snapshot of a part of that log.
/// `run` may read several logs at the same time. REQUIRES: every incarnation has its cut.
Result<void> collect_streams(FileSystem& file_system, LogStart& start,
                             const RunTasks& run = run_in_turn);

/// Syncs the logs of the last incarnation, because a killed process may have left blocks unsynced.
/// Then stores the cut and takes the number `start.incarnation`. Removes from the savepoint's list
/// the first incarnations that neither a kept snapshot nor the recovery needs. With the scheme
/// `gleaned` it does so only if `streams_to_read` is empty. Before that,
/// when the savepoint durably lists every incarnation with its cut, calls `on_cut`. `on_cut`
/// returns whether incarnations may leave the list: an archive must know them durably before (R72).
Result<void> store_cut(FileSystem& file_system, const std::string& data_dir, LogStart& start,
                       const std::function<Result<bool>()>& on_cut = {});

/// Lists the incarnation in the savepoint.
/// REQUIRES: store_cut has returned.
/// Error: code durability if a logger has not created its first file.
Result<void> begin_incarnation(FileSystem& file_system, const std::string& data_dir,
                               LogStart& start, std::vector<LoggerPlace> loggers);

/// Stores the durable epoch of the running incarnation in the savepoint at an orderly stop. A
/// start-up can then distinguish even damage to the last epoch from a torn tail. REQUIRES:
/// begin_incarnation has returned; the loggers have closed this epoch and write no more.
Result<void> store_durable_epoch(FileSystem& file_system, const std::string& data_dir,
                                 LogStart& start, uint64_t durable_epoch);

}  // namespace atolldb
