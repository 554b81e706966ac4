// Room on the file systems that hold logs. A running cluster keeps a reserve free for its loggers.
// The ballast is a preallocated file that a recovery on a full disk may release (R54).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/file/file.h"

namespace atolldb {

/// The automatic reserve of a file system has room for this number of log files of each of its
/// loggers. It has at least kMinDiskReserve bytes.
inline constexpr uint64_t kReservedLogFiles = 2;
/// Lower limit of the automatic reserve, in bytes.
inline constexpr uint64_t kMinDiskReserve = uint64_t{1} << 30;

/// A file system that holds logs.
struct LogFileSystem {
  std::string directory;  // the first configured directory on it
  uint64_t loggers = 0;   // number of loggers, over all nodes, that write to it
};
/// Groups the log directories by device. A missing directory belongs to the device of its nearest
/// ancestor that exists.
std::vector<LogFileSystem> log_file_systems(const Config& config);

/// Returns the bytes that snapshots, checkpoints and backups of a running cluster leave free in the
/// file system of this directory. That is gleaner.disk_reserve, or the automatic reserve if the key
/// is 0.
uint64_t disk_reserve(const Config& config, const std::string& directory);

/// Returns a warning for each file system with logs where gleaner.disk_reserve is smaller than
/// kReservedLogFiles log files of each logger. The loggers may find no room there while a snapshot
/// is written.
std::vector<std::string> low_disk_reserves(const Config& config);

/// Returns "<directory>/ballast.atoll".
std::string ballast_path(const std::string& directory);

/// The ballast: one file on each file system with logs. Its size is durability.ballast_files log
/// files for each logger there. REQUIRES: the directories are locked. Thread: one.
class Ballast {
 public:
  /// REQUIRES: `config` and `file_system` outlive this object.
  Ballast(const Config& config, FileSystem& file_system)
      : config_(config), file_system_(file_system) {}

  /// Removes the ballast files in `directories`. Returns the number of removed files.
  Result<uint32_t> release(const std::set<std::string>& directories);
  /// Makes the ballast files that are missing or have another size. Removes the files in
  /// `directories` that the config needs no more. Returns code disk_full if a file system has no
  /// room for its file beside the reserve. Even then makes the files on the other file systems.
  Result<void> rebuild(const std::set<std::string>& directories);

 private:
  Result<void> rebuild_at(const LogFileSystem& place);

  const Config& config_;
  FileSystem& file_system_;
};

}  // namespace atolldb
