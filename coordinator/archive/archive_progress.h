// The coordinator's knowledge of what the archive has (R72). The archiver changes it, and threads
// that delete log files ask it.
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

/// Thread: any. Only one of the writers below may run at a time.
class ArchiveProgress {
 public:
  /// Reads the state of the archive. If there is no state of these data, begins a new one. Then
  /// adds the incarnations of the savepoint. `salvages`: this start-up salvages, so a new history
  /// begins (R56).
  ///
  /// If the state cannot be stored, logs a warning, and store_pending stores it later. A full disk
  /// must not stop a start-up (R54). REQUIRES: store_cut has stored `savepoint`; `file_system`
  /// outlives the object.
  static Result<std::unique_ptr<ArchiveProgress>> open(FileSystem& file_system,
                                                       const Config& config,
                                                       const Savepoint& savepoint, bool salvages,
                                                       const Logger& logger);

  /// Begins a new history if there is a state, for a salvage without an archive in the config. The
  /// salvage gives up commits that an archive may have (R56).
  static Result<void> note_salvage(FileSystem& file_system, const std::string& data_dir);

  /// Returns whether the file must not be deleted yet, because it is not archived (R72).
  bool must_stay(const LogFilePlace& place) const;
  ArchiveState state() const;

  /// Adds the incarnations of the savepoint. If the state cannot be stored, logs a warning, as
  /// `open` does.
  void add(const Savepoint& savepoint);

  /// Stores the changes of `open` or `add` that could not be stored then. Does nothing if there are
  /// none. Until this succeeds, the savepoint must not forget an incarnation (R72). Thread: any.
  Result<void> store_pending();

  // The writers. On return the new state is durable; after an error the old state is still valid.
  // Thread: the archiver's.
  Result<void> apply(const ArchiveRecord& record);
  Result<void> remove(uint64_t incarnation);
  Result<void> replace(ArchiveState next);

 private:
  ArchiveProgress(FileSystem& file_system, std::string data_dir, std::string target, Logger logger)
      : files_(file_system),
        data_dir_(std::move(data_dir)),
        target_(std::move(target)),
        logger_(std::move(logger)) {}
  /// REQUIRES, for this function and `store`: change_mutex_ is held, or no other thread knows the
  /// object.
  void store_or_warn(const ArchiveState& state);
  /// Writes the state, and then replaces state_ by it.
  Result<void> store(ArchiveState next);

  FileSystem& files_;
  const std::string data_dir_;
  const std::string target_;  // name of the config's archive
  Logger logger_;
  std::mutex change_mutex_;   // held while a change is made and written
  bool is_stored_ = true;     // state_ is in the file; guarded by change_mutex_
  mutable std::mutex mutex_;  // held for reads and replacements of state_
  ArchiveState state_;        // guarded by mutex_
};

}  // namespace atolldb
