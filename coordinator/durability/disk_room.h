// Room on the file systems that hold logs: what a running cluster keeps free for its loggers, and
// the ballast, a preallocated file that a recovery on a full disk may give up (rule R54).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Log files of each logger that snapshots of a running cluster leave room for, at least.
inline constexpr uint64_t kReservedLogFiles = 2;

/// A file system with logs.
struct LogFileSystem {
  std::string directory;  // the first one on it that is configured
  uint64_t loggers = 0;   // of all nodes, that write to it
};
/// By the devices of the directories, or of the nearest ones above them that exist.
std::vector<LogFileSystem> log_file_systems(const Config& config);

/// What a snapshot of a running cluster leaves free in each file system: gleaner.disk_reserve, but
/// room for kReservedLogFiles of each logger on the file system with most of them at least; 0 if
/// the key is 0.
uint64_t disk_reserve(const Config& config);

/// "<directory>/ballast.atoll"
std::string ballast_path(const std::string& directory);

/// One file on each file system with logs, of durability.ballast_files log files for each logger
/// there. REQUIRES: the directories are locked. One thread.
class Ballast {
 public:
  /// `config` and `file_system` outlive it.
  Ballast(const Config& config, FileSystem& file_system)
      : config_(config), file_system_(file_system) {}

  /// Removes it from all `directories`. Answers how many files that were: 0 means that there was
  /// nothing to give up.
  Result<uint32_t> release(const std::set<std::string>& directories);
  /// Makes what is missing, or has another size, and removes what is not configured any more. Code
  /// disk_full: some file system has no room for it beside the reserve; the others have theirs.
  Result<void> rebuild(const std::set<std::string>& directories);

 private:
  Result<void> rebuild_at(const LogFileSystem& place);

  const Config& config_;
  FileSystem& file_system_;
};

}  // namespace atolldb
