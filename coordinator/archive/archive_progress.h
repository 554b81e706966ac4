// The state of the archive, for the threads of the coordinator (R72): the one that archives, and
// those that delete log files.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "engine/archive/archive_state.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/file/file.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// Returns the name of the config's archive, as ArchiveTarget::name does.
std::string archive_target_name(const Config::Archive& archive);

/// Thread: any, except for `open` and the writers, of which one works at a time.
class ArchiveProgress {
 public:
  /// Reads the state, or begins a new one if there is none of these data. Adds the incarnations of
  /// the savepoint. `salvages`: the start-up salvages, so a new history begins (R56). If the state
  /// cannot be stored, a warning says so, and store_pending stores it later: a full disk must not
  /// stop a start-up (R54). REQUIRES: store_cut has stored `savepoint`; `file_system` outlives the
  /// object.
  static Result<std::unique_ptr<ArchiveProgress>> open(FileSystem& file_system,
                                                       const Config& config,
                                                       const Savepoint& savepoint, bool salvages,
                                                       const Logger& logger);

  /// Begins a new history if there is a state: a salvage gives up commits that the archive may
  /// have, even if nothing is archived now (R56).
  static Result<void> note_salvage(FileSystem& file_system, const std::string& data_dir);

  /// Whether the file must stay until it is archived (R72).
  bool must_stay(const LogFilePlace& place) const;
  ArchiveState state() const;

  /// Adds the incarnations of the savepoint. A failure to store them is a warning, as above.
  void add(const Savepoint& savepoint);

  /// Stores what a failure of `open` or `add` has left in memory only, if there is any. Until this
  /// succeeds, the savepoint must not forget an incarnation (R72). Thread: any.
  Result<void> store_pending();

  // The writers. The new state is durable on return; after an error the old one holds. Thread: the
  // one that archives.
  Result<void> apply(const ArchiveRecord& record);
  Result<void> remove(uint64_t incarnation);
  Result<void> replace(ArchiveState next);

 private:
  ArchiveProgress(FileSystem& file_system, std::string data_dir, std::string target, Logger logger)
      : files_(file_system),
        data_dir_(std::move(data_dir)),
        target_(std::move(target)),
        logger_(std::move(logger)) {}
  /// REQUIRES, both: change_mutex_ is held, or no other thread knows the object.
  void store_or_warn(const ArchiveState& state);
  /// Writes the state, and then makes it the one of this object.
  Result<void> store(ArchiveState next);

  FileSystem& files_;
  const std::string data_dir_;
  const std::string target_;  // of the config
  Logger logger_;
  std::mutex change_mutex_;   // held during a change, with its write
  bool is_stored_ = true;     // the file has all of state_; guarded by change_mutex_
  mutable std::mutex mutex_;  // held for reads and for the store of a new state
  ArchiveState state_;        // guarded by mutex_
};

}  // namespace atolldb
