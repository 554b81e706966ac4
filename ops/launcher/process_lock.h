// A lock on a folder. All processes of a cluster hold it through open file descriptions that they
// inherit (R31). So the lock is free only when the last of these processes has ended. The locked
// file names them, so that the next owner knows which of them may still be ending. The file also
// has an identity: a copy of it names processes of another cluster, and none of them is signalled
// (R49).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/process_id.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

class ProcessLock {
 public:
  /// Makes and locks the file. Kills remaining processes of a dead cluster that hold it. `key`: the
  /// config key of the folder, for errors. Returns code already_running, with name and pid, if a
  /// live cluster holds it.
  static Result<ProcessLock> acquire(const std::string& path, const std::string& cluster,
                                     const std::string& key);
  /// Does the same as `acquire`, for the file `lock` in a directory of data. First locks the
  /// directory itself, which stays locked if the lock file is removed.
  static Result<ProcessLock> acquire_directory(const std::string& directory,
                                               const std::string& cluster, const std::string& key);
  ProcessLock(ProcessLock&&) = default;
  ProcessLock& operator=(ProcessLock&&) = default;

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  bool is_held() const { return fd_.is_open(); }
  /// Returns false if the file was removed or replaced, or if its folder was renamed or mounted
  /// over.
  bool is_in_place() const;
  /// Returns the descriptor of the locked directory. It is closed if only a file is locked, or if
  /// the file system cannot lock directories.
  const UniqueFd& directory_fd() const { return directory_fd_; }
  /// Returns the launcher that the previous owner left in the file. Returns nothing if the file was
  /// new, empty, a copy, or of another user.
  const std::optional<ProcessId>& previous_launcher() const { return previous_launcher_; }
  bool was_left() const { return was_left_; }
  /// Sets the run folder of the cluster, which the file names from the next write_processes on.
  void set_run_dir(std::string run_dir) { run_dir_ = std::move(run_dir); }

  /// Writes the processes of the cluster: this one as its launcher, and `children`.
  Result<void> write_processes(const std::vector<ProcessId>& children);
  /// Removes the processes from the file. Called at an orderly end.
  void forget_processes();

 private:
  ProcessLock(std::string path, std::string cluster, std::string key, UniqueFd fd)
      : path_(std::move(path)),
        cluster_(std::move(cluster)),
        key_(std::move(key)),
        fd_(std::move(fd)) {}

  std::string path_;
  std::string cluster_;
  std::string key_;
  std::string run_dir_;  // empty: the file does not name one
  UniqueFd fd_;
  UniqueFd directory_fd_;
  bool was_left_ = false;
  std::optional<ProcessId> previous_launcher_;
};

/// Returns the launcher that the file at `path` names, if that process is alive, this user owns the
/// file, and it is not a copy.
std::optional<ProcessId> launcher_of_lock(const std::string& path);

}  // namespace atolldb
