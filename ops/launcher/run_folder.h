// The run folder of a cluster: its lock, what a dead cluster left there, and its clean-up.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/launcher/process_lock.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/process/process_id.h"

namespace atolldb {

/// Owns the locked folder; the destructor cleans it up.
class RunFolder {
 public:
  /// Makes and locks the folder. A live cluster: already_running, with its pid. What a dead one
  /// left is removed; `leftovers` then says what.
  static Result<RunFolder> acquire(const Config& config);
  RunFolder(RunFolder&&) = default;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  /// The open file description that all processes of the cluster inherit (R31).
  int lock_fd() const { return lock_.fd(); }
  const std::string& leftovers() const { return leftovers_; }
  /// False once the folder or its lock file was deleted or replaced. Then nothing of it is removed
  /// at the end: what has its name now may be another cluster's.
  bool is_in_place() const;

  /// Notes who belongs to the cluster, so that the next start knows whom it may find dead.
  Result<void> write_processes(const std::vector<ProcessId>& children) {
    return lock_.write_processes(children);
  }
  /// A cluster that is to be started again: nobody is left to talk to, but it has an owner.
  Result<void> await_restart();
  /// Writes a file of the folder in one piece (others see it whole or not at all).
  static Result<void> write_file(const std::string& path, const std::string& text);

 private:
  RunFolder(const Config& config, ProcessLock lock) : config_(config), lock_(std::move(lock)) {}
  void remove_files();
  /// Where processes that live no more were found.
  void remove_endpoints();

  Config config_;
  ProcessLock lock_;
  std::string leftovers_;
};

/// Refuses run, log and data folders that are one folder by links; the config check compares their
/// names only. Those that do not exist yet are other ones. Code config.
Result<void> check_distinct_folders(const Config& config);

/// The launcher named in the cluster's lock file, if that process lives.
std::optional<ProcessId> running_launcher(const Config& config);

}  // namespace atolldb
