// The run folder of a cluster: its lock, its clean-up, and the removal of files of a dead cluster.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/launcher/process_lock.h"
#include "shared/base/error.h"
#include "shared/base/process_id.h"
#include "shared/config/config.h"

namespace atolldb {

/// Owns the locked folder; the destructor removes the files in it.
class RunFolder {
 public:
  /// Makes and locks the folder. Returns code already_running, with the pid, if the folder belongs
  /// to a live cluster. Removes files of a dead cluster; `leftovers` then describes them.
  static Result<RunFolder> acquire(const Config& config);
  RunFolder(RunFolder&&) = default;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  /// The open file description that all processes of the cluster inherit (R31).
  int lock_fd() const { return lock_.fd(); }
  const std::string& leftovers() const { return leftovers_; }
  /// From now on, a control endpoint outside of the folder belongs to this cluster. A socket that
  /// exists there was left by a dead cluster, and is removed. REQUIRES: no live cluster has the
  /// note or the data of this cluster.
  void take_endpoint();
  /// Returns false if the folder or its lock file was deleted or replaced. A folder of that name
  /// may then belong to another cluster, so nothing in it is removed at the end.
  bool is_in_place() const { return lock_.is_in_place(); }

  /// Writes the processes of the cluster into the lock file, for the next start-up.
  Result<void> write_processes(const std::vector<ProcessId>& children) {
    return lock_.write_processes(children);
  }
  /// Prepares a restart: removes the cluster's endpoints and keeps the lock.
  Result<void> await_restart();
  /// Writes a file of the folder atomically: readers see all of it, or the previous file.
  static Result<void> write_file(const std::string& path, const std::string& text);

 private:
  RunFolder(const Config& config, ProcessLock lock) : config_(config), lock_(std::move(lock)) {}
  void remove_files();
  /// Removes the endpoints of processes that have ended.
  void remove_endpoints();
  void remove_control_socket();

  Config config_;
  ProcessLock lock_;
  bool has_endpoint_ = false;
  std::string leftovers_;
};

/// Returns code config if run, log and data folders are the same folder through links. The config
/// check compares only their names. Folders that do not exist yet count as different.
Result<void> check_distinct_folders(const Config& config);

/// Returns the launcher named in the cluster's lock file, if that process lives.
std::optional<ProcessId> running_launcher(const Config& config);

}  // namespace atolldb
