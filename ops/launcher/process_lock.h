// A lock on a folder. All processes of a cluster hold it through one open file description that
// they inherit (R31), so it is free only when the last of them has ended. The locked file lists
// these processes, so the next owner knows which ones may still be dying. It also identifies
// itself: a copy lists processes of another cluster, and none of them is signalled (R49).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/error.h"
#include "shared/process/process_id.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

class ProcessLock {
 public:
  /// Makes and locks the file. Kills remaining processes of a dead cluster that hold it. `key`: the
  /// config key of the folder, for errors. Returns code already_running, with name and pid, if a
  /// live cluster holds it.
  static Result<ProcessLock> acquire(const std::string& path, const std::string& cluster,
                                     const std::string& key);
  ProcessLock(ProcessLock&&) = default;
  ProcessLock& operator=(ProcessLock&&) = default;

  int fd() const { return fd_.get(); }
  bool is_held() const { return fd_.is_open(); }
  /// The launcher of the cluster that held the file before and neither removed nor emptied it.
  const std::optional<ProcessId>& previous_launcher() const { return previous_launcher_; }
  bool was_left() const { return was_left_; }
  /// From the next write_processes on, the file also names the run folder of its cluster.
  void set_run_dir(std::string run_dir) { run_dir_ = std::move(run_dir); }

  /// Writes the processes of the cluster: this one as its launcher, and `children`.
  Result<void> write_processes(const std::vector<ProcessId>& children);
  /// For an orderly end: the file then lists no process.
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
  bool was_left_ = false;
  std::optional<ProcessId> previous_launcher_;
};

/// Returns the launcher that the file at `path` names, if that process lives, and the file is this
/// user's and no copy.
std::optional<ProcessId> launcher_of_lock(const std::string& path);

}  // namespace atolldb
