// A note that a launcher leaves while its cluster lives: which config file the cluster has, and
// where its run folder is. Its place follows from the user and from the path of the config file
// alone, so that the same file finds the same cluster in every environment.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "ops/launcher/lock_holder.h"
#include "ops/launcher/process_lock.h"
#include "shared/config/config.h"
#include "shared/error.h"

namespace atolldb {

/// "/tmp/atoll-1000/.by-config": of that user, whatever its variables are.
std::string notes_folder(uid_t user);

/// The note of a config file: a lock file that its launcher holds. REQUIRES: `config_file` is
/// absolute, without links.
std::string note_path(uid_t user, const std::string& config_file);

/// The path of a config file by which its note is found; empty: it is no regular file (a pipe).
std::string canonical_config_file(const std::string& path);

/// Owns the note; the destructor removes it. Notes of dead launchers are removed by the next start.
class ClusterNote {
 public:
  /// Code already_running: a cluster of this file runs. Other errors: no note can be left.
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

/// The live cluster of a config file, by its note: of this user; for root, of any user.
std::optional<LockHolder> noted_cluster(const std::string& config_file);

}  // namespace atolldb
