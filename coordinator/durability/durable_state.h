// The coordinator's files in the data directory: the savepoint and the DDL log. This module checks
// the files of earlier incarnations, and records the orderly end of the running incarnation (R28,
// R29, R30, R31, R32, R34).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/archive/archive_progress.h"
#include "coordinator/durability/disk_room.h"
#include "engine/log/ddl_log.h"
#include "engine/recovery/log_start.h"
#include "engine/recovery/retention.h"
#include "shared/base/error.h"
#include "shared/base/run_tasks.h"
#include "shared/config/config.h"
#include "shared/file/file_system.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// Thread: the main thread. This is first the thread that opens the cluster, then the snapshot
/// taker, then the thread that stops the cluster. The DDL thread may call log_ddl and record_idle
/// at the same time.
class DurableState {
 public:
  /// Reads the data directory and stores the cut. Returns code corruption (exit 7) if something is
  /// damaged. `incarnation`: lower bound of this incarnation's number. `files`: the file system of
  /// the config, or a test's. REQUIRES: the lock of the data directory is held.
  static Result<std::unique_ptr<DurableState>> open(const Config& config, uint64_t incarnation,
                                                    std::unique_ptr<FileSystem> files,
                                                    const Logger& logger);

  uint64_t incarnation() const { return start_.incarnation; }
  uint64_t start_epoch() const { return start_.start_epoch; }
  const ClusterUuid& data_uuid() const { return start_.savepoint.cluster_uuid; }

  /// Returns the creations and drops of all earlier incarnations, in order.
  const std::vector<DdlRecord>& ddl() const { return ddl_->records(); }

  /// The newest snapshot or checkpoint, if there is one, and the logs after it. Recovery must read
  /// all their records up to recovery_epoch().
  const std::optional<SnapshotMetadata>& snapshot() const { return start_.snapshot; }
  const std::optional<CheckpointMetadata>& checkpoint() const { return start_.checkpoint; }
  const std::vector<PlannedStream>& streams_to_read() const { return start_.streams_to_read; }
  uint64_t recovery_epoch() const { return start_.recovery_epoch; }

  /// Snapshots that users have pinned.
  const std::vector<PinnedSnapshot>& pinned() const { return start_.savepoint.pinned; }

  /// Takes an id for the next snapshot or checkpoint durably. No other one gets this id (R37).
  Result<uint32_t> take_snapshot_id();
  /// Makes the snapshot the newest one. From then on, recovery needs no log up to its epoch. After
  /// an error it is unknown whether the savepoint names the snapshot. REQUIRES: its files and
  /// metadata are durable.
  Result<void> store_snapshot(const SnapshotMetadata& metadata);

  /// Makes the checkpoint the newest one (R98). From then on, recovery needs no log before its
  /// replay epoch. After an error it is unknown whether the savepoint names the checkpoint.
  /// REQUIRES: the checkpoint is installed; begin was called.
  Result<void> store_checkpoint(const CheckpointMetadata& metadata);
  /// Returns the number of incarnations that the savepoint lists.
  size_t listed_incarnations();

  /// Returns the log streams of the running incarnation, up to `epoch`. REQUIRES: begin was called,
  /// and the epoch is durable.
  std::vector<PlannedStream> live_streams(uint64_t epoch) const;
  /// Deletes files of logs, snapshots and checkpoints that nothing needs (R38). Returns the number
  /// of deleted files. `in_use`: snapshots that pages or transactions refer to, whose files are
  /// kept. REQUIRES: no snapshot job and no checkpoint is under way.
  Result<size_t> delete_unneeded(const std::set<uint32_t>& in_use);

  /// Calls choose_pin and pin_snapshot. Returns the new pin.
  Result<PinnedSnapshot> pin(uint32_t id, const std::string& name);
  /// Calls find_pin and unpin_snapshot. Returns the removed pin.
  Result<PinnedSnapshot> unpin(const std::string& name_or_id);
  /// Calls give_up_backup_pins, because the cluster needs the room (R65). Returns the number of
  /// removed pins.
  Result<size_t> give_up_backup_pins();
  /// Calls remove_snapshot. Returns the number of deleted files. `in_use`: snapshots that pages or
  /// transactions refer to. REQUIRES: no snapshot job is under way.
  Result<size_t> remove(uint32_t id, const std::set<uint32_t>& in_use);

  /// Removes the ballast, for a recovery that lacks room. Returns false if there was none.
  Result<bool> release_ballast();
  /// Makes the ballast, unless it exists. Without room it only logs a warning, once, because the
  /// next call tries again. Without ballast, a recovery on a full disk has no room to release.
  void keep_ballast(const Logger& logger);

  /// Returns the directories that may hold files of earlier incarnations and are not configured
  /// now, each with the number of this cluster's files of logs, snapshots and checkpoints.
  /// delete_unneeded deletes files there, too.
  Result<std::map<std::string, size_t>> left_directories();

  FileSystem& files() { return *files_; }

  /// Returns null if nothing is archived.
  ArchiveProgress* archive() { return archive_.get(); }
  /// Returns the directories that may hold log files. They do not change. Thread: any.
  const std::set<std::string>& directories() const { return directories_; }
  /// Returns the number of durable DDL records. Thread: any.
  uint64_t ddl_record_count() const { return ddl_records_.load(std::memory_order_relaxed); }

  /// Returns whether this start-up salvages: it skips data that cannot be read, and deletes nothing
  /// before end_salvage.
  bool salvages() const { return salvage_.has_value(); }
  /// Returns why this start-up does not use the newest snapshot (R55), or "" if it does.
  const std::string& fallback() const { return start_.fallback; }
  /// Returns the files of older kept snapshots whose metadata can be read.
  std::vector<SnapshotFilePlace> kept_places() const;
  /// Returns descriptions of the parts of logs and files that the check of this salvage has
  /// omitted.
  const std::vector<std::string>& left_out() const { return start_.left_out; }
  /// Adds `found` to the salvage's report, durably, and returns the report. In the lists "left_out"
  /// and "ranges" it keeps the entries of earlier attempts, and lists equal entries once. All other
  /// members are those of `found`. REQUIRES: salvages().
  Result<Json> report_salvage(Json found);
  /// Ends the salvage and returns the path of the report. REQUIRES: salvages(), and delete_unneeded
  /// has succeeded since the salvaged snapshot was stored.
  Result<std::string> end_salvage();

  /// Stores the savepoint after which commits may be accepted. REQUIRES: all loggers have begun
  /// their first files. A snapshot has the records of all streams to read, or they were replayed
  /// (R32).
  Result<void> begin();
  /// Logs the record durably (R34), and counts the record in the savepoint. Later damage to the
  /// record is then not taken for a torn append (R52). If the append fails, all later calls fail.
  Result<void> log_ddl(const DdlRecord& record);
  /// Lets the savepoint record the durable epoch of the idle cluster, in addition to the closing
  /// markers of the logs (R51). REQUIRES: begin was called.
  Result<void> record_idle(uint64_t durable_epoch);
  /// Records an orderly end: all commits up to this epoch are durable, and no commit is later.
  Result<void> end(uint64_t durable_epoch);

 private:
  DurableState(const Config& config, std::unique_ptr<FileSystem> files);
  /// Returns which log files the archive keeps, or an empty function (R72).
  KeepLog keep_log() const;
  /// Returns whether incarnations may leave the savepoint. Returns false if the archive's state
  /// cannot be stored: after a crash neither the savepoint nor the archive would know these
  /// incarnations (R72).
  bool may_forget_log();
  /// Removes the leftovers of given-up start-ups, before this start-up creates any file (R54).
  void remove_leftovers(const Logger& logger);
  std::set<std::string> all_directories() const;
  /// Sets the number of durable DDL records for the next write of the savepoint.
  void record_ddl_count();
  /// Changes two members of the savepoint durably. REQUIRES: savepoint_mutex_ is held.
  Result<void> record_in_savepoint(uint64_t ddl_records, uint64_t durable_epoch);

  const Config& config_;
  std::unique_ptr<FileSystem> files_;
  const RunTasks run_;  // checks logs with many threads, because no transaction runs yet
  std::unique_ptr<ArchiveProgress> archive_;  // null: nothing is archived
  Ballast ballast_;
  bool lacks_ballast_ = false;  // the latest call of keep_ballast has failed
  LogStart start_;
  std::optional<DdlLog> ddl_;
  std::atomic<uint64_t> ddl_records_{0};  // number of durable DDL records. Writer: the DDL thread
  /// Held during each change of the savepoint. log_ddl and record_idle change ddl_records,
  /// durable_epoch and generation. The main thread reads these members only under this lock. The
  /// DDL thread only reads the other members.
  std::mutex savepoint_mutex_;
  /// All directories that held files when this incarnation began. The savepoint may drop
  /// incarnations and snapshots that name a directory before the files in it are deleted.
  std::set<std::string> directories_;
  std::optional<uint32_t> salvage_;  // number of the salvage under way
  bool has_begun_ = false;
};

}  // namespace atolldb
