// What the coordinator keeps in the data directory: savepoint and DDL log, from the look at what an
// earlier incarnation left to the orderly end of this one (design: durability; rules R28-R32, R34).
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

#include "coordinator/durability/disk_room.h"
#include "engine/log/ddl_log.h"
#include "engine/log/log_start.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/file/file_system.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// One thread at a time; but log_ddl and note_idle may be called by a second one.
class DurableState {
 public:
  /// Reads the data directory, refuses what is damaged (corruption, exit 7); then stores the cut.
  /// REQUIRES: the lock of the data directory. `incarnation`: this one's number is at least that.
  /// `files` are those of the config, or a test's.
  static Result<std::unique_ptr<DurableState>> open(const Config& config, uint64_t incarnation,
                                                    std::unique_ptr<FileSystem> files,
                                                    const Logger& logger);

  uint64_t incarnation() const { return start_.incarnation; }
  uint64_t start_epoch() const { return start_.start_epoch; }
  const ClusterUuid& data_uuid() const { return start_.savepoint.cluster_uuid; }

  /// Creations and drops of all earlier incarnations, in order.
  const std::vector<DdlRecord>& ddl() const { return ddl_->records(); }

  /// The newest snapshot, if there is one, and what recovery must glean of the logs behind it: all
  /// records up to recovery_epoch().
  const std::optional<SnapshotMetadata>& snapshot() const { return start_.snapshot; }
  const std::vector<GleanStream>& to_glean() const { return start_.to_glean; }
  uint64_t recovery_epoch() const { return start_.recovery_epoch; }

  /// Snapshots that users keep.
  const std::vector<PinnedSnapshot>& pinned() const { return start_.savepoint.pinned; }

  /// The id of the snapshot that is to be made; durably, no other one gets it (R37).
  Result<uint32_t> take_snapshot_id();
  /// The snapshot exists from now on, and there is nothing to glean up to its epoch. REQUIRES: its
  /// files and metadata are durable. An error: it may exist or not.
  Result<void> store_snapshot(const SnapshotMetadata& metadata);

  /// What the running incarnation has logged, up to this epoch, which is durable. REQUIRES: begin.
  std::vector<GleanStream> live_streams(uint64_t epoch) const;
  /// Deletes files of logs and snapshots that nothing needs (R38). `in_use`: snapshots that memory
  /// refers to. Answers how many. REQUIRES: no run of the gleaner is under way.
  Result<size_t> delete_unneeded(const std::set<uint32_t>& in_use);

  /// As choose_pin and pin_snapshot. Answers the pin.
  Result<PinnedSnapshot> pin(uint32_t id, const std::string& name);
  /// As find_pin and unpin_snapshot. Answers the pin that is no more.
  Result<PinnedSnapshot> unpin(const std::string& name_or_id);
  /// As remove_snapshot; REQUIRES and `in_use`: those of delete_unneeded.
  Result<size_t> remove(uint32_t id, const std::set<uint32_t>& in_use);

  /// Gives the ballast up, for a recovery that lacks room. False: there was none.
  Result<bool> release_ballast();
  /// Makes it again. Code disk_full: there is no room for it now.
  Result<void> rebuild_ballast() { return ballast_.rebuild(directories_); }

  /// Directories that were configured when their files were written and are no more: how many of
  /// this cluster's files of logs and snapshots each holds. They count for delete_unneeded.
  Result<std::map<std::string, size_t>> left_directories();

  FileSystem& files() { return *files_; }

  /// This start salvages: what cannot be read is left out, and nothing is deleted before
  /// end_salvage.
  bool salvages() const { return salvage_.has_value(); }
  /// Why this start is not from the newest snapshot (R55); empty: it is.
  const std::string& fallback() const { return start_.fallback; }
  /// The files of older snapshots that are kept, as far as their metadata can be read.
  std::vector<SnapshotFilePlace> kept_places() const;
  /// What of logs and files was left out by the look at them.
  const std::vector<std::string>& left_out() const { return start_.left_out; }
  /// Answers the path of the report. REQUIRES: salvages, and delete_unneeded has succeeded since
  /// the salvaged snapshot was stored.
  Result<std::string> end_salvage(const std::string& report);

  /// From now on commits may be accepted. REQUIRES: all loggers have begun their first files, and
  /// nothing is left to glean (R32).
  Result<void> begin();
  /// Durable when it returns (R34), and the savepoint counts it: damage to it is not taken for a
  /// torn append (R52). An error stays.
  Result<void> log_ddl(const DdlRecord& record);
  /// The cluster is idle: the savepoint notes what is durable of the running incarnation, beside
  /// the closing markers of the logs (R51). REQUIRES: begin.
  Result<void> note_idle(uint64_t durable_epoch);
  /// An orderly end: everything up to this epoch is durable, nothing came after it.
  Result<void> end(uint64_t durable_epoch);

 private:
  DurableState(const Config& config, std::unique_ptr<FileSystem> files)
      : config_(config), files_(std::move(files)), ballast_(config_, *files_) {}
  /// What starts that were given up have left goes before anything is made (R54).
  void remove_leftovers(const Logger& logger);
  std::set<std::string> all_directories() const;
  /// The next write of the savepoint says how many records of DDL are durable.
  void note_ddl();
  /// Changes the savepoint by members that the other thread does not read, durably.
  Result<void> note(uint64_t ddl_records, uint64_t durable_epoch);

  const Config& config_;
  std::unique_ptr<FileSystem> files_;
  Ballast ballast_;
  LogStart start_;
  std::optional<DdlLog> ddl_;
  std::atomic<uint64_t> ddl_records_{0};  // durable; written by who logs them
  /// Held during each change of the savepoint. What log_ddl and note_idle change of it, the first
  /// thread reads only under this lock; the rest they only read.
  std::mutex savepoint_mutex_;
  /// All that held files when this incarnation began: incarnations and snapshots that tell of some
  /// of them may leave the savepoint before those files are deleted.
  std::set<std::string> directories_;
  std::optional<uint32_t> salvage_;  // its number
  bool has_begun_ = false;
};

}  // namespace atolldb
