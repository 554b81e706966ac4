#include "engine/recovery/discard_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "engine/checkpoint/stored_checkpoints.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "engine/recovery/salvage.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"

namespace atolldb {
namespace {

std::string discarding_path(const std::string& data_dir) {
  return savepoint_path(data_dir) + ".discarding";
}

std::string discarded_directory(const std::string& directory, uint32_t number) {
  return path_in(directory, fmt::format("discarded-{}", number));
}

/// Renames a file, but refuses to overwrite an existing one.
Result<void> move_file(FileSystem& file_system, const std::string& from, const std::string& to) {
  CHECK(from != to);
  ATOLL_ASSIGN(const bool exists, file_system.exists(to));
  if (exists) {
    return make_error(ExitCode::failed, from + ": cannot be moved aside: " + to +
                                            " exists: move that file away, then start with `atoll "
                                            "up --discard-data` again");
  }
  return file_system.rename(from, to);
}

/// Moves files from directory to directory, durably.
Result<void> move(FileSystem& file_system, const std::string& from_directory,
                  const std::string& to_directory, const std::vector<std::string>& names) {
  ATOLL_TRY(file_system.make_directory(to_directory));
  for (const std::string& name : names) {
    CHECK(!name.empty() && !name.contains('/'));
    ATOLL_TRY(move_file(file_system, path_in(from_directory, name), path_in(to_directory, name)));
  }
  ATOLL_TRY(file_system.sync_directory(to_directory));
  return file_system.sync_directory(from_directory);
}

Result<std::vector<std::string>> names_in(FileSystem& file_system, const std::string& directory) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return std::vector<std::string>{};
  return file_system.list(directory);
}

/// Returns the first number that no finished discard uses. The folder of an unfinished discard has
/// no savepoint yet.
Result<uint32_t> free_number(FileSystem& file_system, const std::string& data_dir) {
  for (uint32_t number = 0;; ++number) {
    ATOLL_ASSIGN(const bool exists,
                 file_system.exists(savepoint_path(discarded_directory(data_dir, number))));
    if (!exists) return number;
  }
}

/// Returns the savepoint that is being discarded, under its old or new name, or nothing if it is
/// missing or damaged.
Result<std::optional<Savepoint>> find_savepoint(FileSystem& file_system,
                                                const std::string& data_dir) {
  for (const std::string& path : {discarding_path(data_dir), savepoint_path(data_dir)}) {
    auto read = read_savepoint_file(file_system, path);
    if (!read && read.error().code != ExitCode::corruption) return std::unexpected(read.error());
    if (read && *read) return (*read)->savepoint;
  }
  return std::nullopt;
}

struct OwnFiles {
  std::vector<LogFilePlace> logs;
  std::vector<StoredSnapshotFile> snapshots;
  std::vector<StoredCheckpointFile> checkpoints;

  bool is_empty() const { return logs.empty() && snapshots.empty() && checkpoints.empty(); }
};

/// Removes the files of other clusters.
template <typename Place>
Result<void> keep_own(FileSystem& file_system, const ClusterUuid& own, std::vector<Place>& files) {
  std::vector<Place> kept;
  for (const Place& file : files) {
    ATOLL_ASSIGN(const bool foreign, is_foreign(file_system, file, own));
    if (!foreign) kept.push_back(file);
  }
  CHECK(kept.size() <= files.size());
  files = std::move(kept);
  return {};
}

/// Returns the files to move: all but those of other clusters. Without a savepoint the owner is
/// unknown and all files are returned. So the caller must be sure that the directories are its own.
Result<OwnFiles> own_files(FileSystem& file_system, const std::string& data_dir,
                           const std::vector<std::string>& configured) {
  std::set<std::string> directories(configured.begin(), configured.end());
  directories.insert(data_dir);
  ATOLL_ASSIGN(auto savepoint, find_savepoint(file_system, data_dir));
  if (savepoint) {
    for (const Incarnation& incarnation : savepoint->incarnations) {
      for (const LoggerPlace& place : incarnation.loggers) directories.insert(place.directory);
    }
  }
  OwnFiles own;
  ATOLL_ASSIGN(own.logs, log_files_in(file_system, directories));
  ATOLL_ASSIGN(own.snapshots, snapshot_files_in(file_system, data_dir, directories));
  ATOLL_ASSIGN(own.checkpoints, checkpoint_files_in(file_system, data_dir, directories));
  if (!savepoint) return own;
  ATOLL_TRY(keep_own(file_system, savepoint->cluster_uuid, own.logs));
  ATOLL_TRY(keep_own(file_system, savepoint->cluster_uuid, own.snapshots));
  ATOLL_TRY(keep_own(file_system, savepoint->cluster_uuid, own.checkpoints));
  return own;
}

/// Marks durably that a discard is in progress.
Result<void> begin_discard(FileSystem& file_system, const std::string& data_dir) {
  const std::string directory = coordinator_directory(data_dir);
  const std::string discarding = discarding_path(data_dir);
  ATOLL_ASSIGN(auto under_way, file_system.exists(discarding));
  if (!under_way) {
    ATOLL_ASSIGN(const bool exists, file_system.exists(savepoint_path(data_dir)));
    if (exists) {
      ATOLL_TRY(file_system.rename(savepoint_path(data_dir), discarding));
    } else {
      ATOLL_TRY(file_system.make_directory(directory));
      ATOLL_ASSIGN(auto file, file_system.create(discarding, kIoBlockBytes));
      ATOLL_TRY(file->sync());
    }
  }
  return file_system.sync_directory(directory);
}

/// Writes a table of directories for the old savepoint. It says where the files are now.
Result<void> write_discarded_table(FileSystem& file_system, const std::string& data_dir,
                                   uint32_t number) {
  ATOLL_ASSIGN(auto table, DirectoryTable::read(file_system, data_dir));
  DirectoryTable discarded(discarded_directory(data_dir, number));
  for (const DirectoryRole& entry : table.entries()) {
    discarded.set(entry.role, discarded_directory(entry.path, number));
  }
  return discarded.write(file_system);
}

/// Returns true for the files of the coordinator's directory that are moved before the savepoint.
bool moves_before_savepoint(const std::string& name) {
  return parse_ddl_file_name(name) || parse_snapshot_file_name(name) ||
         parse_stored_checkpoint_name(name) || parse_salvage_mark(name);
}

/// Returns true if there is anything to move. A `savepoint.new` of an interrupted start-up does not
/// count, because the next start-up replaces it.
Result<bool> holds_files(FileSystem& file_system, const std::string& data_dir,
                         const std::vector<std::string>& configured) {
  ATOLL_ASSIGN(auto names, names_in(file_system, coordinator_directory(data_dir)));
  for (const std::string& name : names) {
    const std::string path = path_in(coordinator_directory(data_dir), name);
    const bool is_savepoint = path == savepoint_path(data_dir) || path == discarding_path(data_dir);
    if (is_savepoint || moves_before_savepoint(name)) return true;
  }
  ATOLL_ASSIGN(auto files, own_files(file_system, data_dir, configured));
  return !files.is_empty();
}

}  // namespace

Result<void> refuse_unfinished_discard(FileSystem& file_system, const std::string& data_dir) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(discarding_path(data_dir)));
  if (!exists) return {};
  return make_error(ExitCode::failed, data_dir +
                                          ": moving its data aside was interrupted: finish it with "
                                          "`atoll up --discard-data`");
}

Result<std::vector<std::string>> discard_data(FileSystem& file_system, const std::string& data_dir,
                                              const std::vector<std::string>& directories) {
  ATOLL_ASSIGN(const bool any, holds_files(file_system, data_dir, directories));
  if (!any) return std::vector<std::string>{};
  ATOLL_TRY(begin_discard(file_system, data_dir));
  ATOLL_ASSIGN(auto number, free_number(file_system, data_dir));
  ATOLL_ASSIGN(const OwnFiles files, own_files(file_system, data_dir, directories));

  std::set<std::string> used;
  std::map<std::pair<std::string, uint32_t>, std::vector<std::string>> by_directory;
  for (const LogFilePlace& file : files.logs) {
    by_directory[{file.directory, file.node}].push_back(to_string(file.name));
  }
  for (const StoredSnapshotFile& file : files.snapshots) {
    if (file.node == kCoordinator) continue;  // moved below, with the coordinator's other files
    // Some of these files are metadata: a copy of another data directory may have left them here.
    by_directory[{file.directory, file.node}].push_back(file.path.substr(file.path.rfind('/') + 1));
  }
  for (const StoredCheckpointFile& file : files.checkpoints) {
    if (file.node == kCoordinator) continue;
    CHECK(file.kind == StoredCheckpointKind::records || file.node < kMaxNodes);
    by_directory[{file.directory, file.node}].push_back(file.name());
  }
  for (const auto& [place, names] : by_directory) {
    const auto& [directory, node] = place;
    const std::string target = discarded_directory(directory, number);
    ATOLL_TRY(
        move(file_system, node_directory(directory, node), node_directory(target, node), names));
    used.insert(target);
  }

  const std::string coordinator = coordinator_directory(data_dir);
  const std::string target = discarded_directory(data_dir, number);
  used.insert(target);
  ATOLL_ASSIGN(auto names, names_in(file_system, coordinator));
  // The coordinator's files are moved after those of the nodes, because metadata tells where the
  // files of snapshots are.
  std::erase_if(names, [](const std::string& name) { return !moves_before_savepoint(name); });
  ATOLL_TRY(move(file_system, coordinator, coordinator_directory(target), names));
  ATOLL_TRY(write_discarded_table(file_system, data_dir, number));
  ATOLL_TRY(file_system.rename(discarding_path(data_dir), savepoint_path(target)));
  for (const std::string& directory : {coordinator_directory(target), coordinator}) {
    ATOLL_TRY(file_system.sync_directory(directory));
  }
  return std::vector<std::string>(used.begin(), used.end());
}

}  // namespace atolldb
