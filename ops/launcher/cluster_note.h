// A note file that maps a config file to the run folder of its live cluster. Its path depends only
// on the user and on the path of the config file. So the same config file finds the same cluster in
// every environment.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "ops/launcher/lock_holder.h"
#include "ops/launcher/process_lock.h"
#include "shared/base/error.h"
#include "shared/config/config.h"

namespace atolldb {

/// Returns "/tmp/atoll-1000/.by-config" for user 1000, whatever that user's environment is.
std::string notes_folder(uid_t user);

/// Returns the path of a config file's note, a lock file that its launcher holds. REQUIRES:
/// `config_file` is absolute and without links.
std::string note_path(uid_t user, const std::string& config_file);

/// Returns the canonical path of a config file, or an empty text if it is no regular file (a pipe).
std::string canonical_config_file(const std::string& path);

/// Owns the note; the destructor removes it. The next start-up removes notes of dead launchers.
class ClusterNote {
 public:
  /// Writes the note. Returns code already_running if a cluster of this file runs, or another error
  /// if the note cannot be made.
  static Result<ClusterNote> leave(const std::string& config_file, const Config& config);
  ClusterNote(ClusterNote&&) = default;
  ClusterNote& operator=(ClusterNote&&) = delete;
  ~ClusterNote();

 private:
  ClusterNote(std::string path, ProcessLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  ProcessLock lock_;
};

/// Returns the live cluster that the note of the config file names, or nothing if there is none.
/// For root, notes of other users count, too, if the user owns the config file or its `data_dir`.
std::optional<LockHolder> noted_cluster(const std::string& config_file,
                                        const std::string& data_dir);

}  // namespace atolldb
