#include "engine/recovery/named_directories.h"

#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns the ids of all snapshots that have metadata.
Result<std::vector<uint32_t>> ids_of_metadata(FileSystem& file_system,
                                              const std::string& data_dir) {
  std::vector<uint32_t> ids;
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return ids;
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  for (const std::string& name : names) {
    const auto parsed = parse_snapshot_file_name(name);
    if (parsed && parsed->kind == StoredSnapshotKind::metadata) ids.push_back(parsed->snapshot);
  }
  return ids;
}

bool is_damage(const Error& error) { return error.code == ExitCode::corruption; }

Result<void> add_of_savepoint(FileSystem& file_system, const std::string& path,
                              NamedDirectories& named) {
  auto slots = read_savepoint_slots(file_system, path);
  if (!slots) {
    if (!is_damage(slots.error())) return std::unexpected(slots.error());
    named.is_partial = true;
    return {};
  }
  for (const SavepointSlot& slot : *slots) {
    if (!slot.damage.empty()) named.is_partial = true;
    if (!slot.savepoint) continue;
    for (const Incarnation& incarnation : slot.savepoint->incarnations) {
      for (const LoggerPlace& place : incarnation.loggers) {
        named.directories.insert(place.directory);
      }
    }
  }
  return {};
}

Result<void> rename_in(std::string& directory, const RenameDirectory& rename) {
  ATOLL_ASSIGN(auto renamed, rename(directory));
  directory = std::move(renamed);
  return {};
}

Result<void> rename_in_savepoint(FileSystem& file_system, const std::string& data_dir,
                                 const RenameDirectory& rename) {
  auto read = read_savepoint(file_system, data_dir);
  if (!read && !is_damage(read.error())) return std::unexpected(read.error());
  if (!read || !*read) return {};
  Savepoint savepoint = (*read)->savepoint;
  for (Incarnation& incarnation : savepoint.incarnations) {
    for (LoggerPlace& place : incarnation.loggers) {
      ATOLL_TRY(rename_in(place.directory, rename));
    }
  }
  const uint64_t generation = savepoint.generation;
  // Each write replaces the older slot, so two writes replace both.
  for (int slot = 0; slot < 2; ++slot) {
    ATOLL_TRY(write_savepoint(file_system, data_dir, savepoint));
  }
  CHECK(savepoint.generation == generation + 2);
  return {};
}

/// Adds the directories that the metadata of checkpoints names.
Result<void> add_of_checkpoints(FileSystem& file_system, const std::string& data_dir,
                                NamedDirectories& named) {
  ATOLL_ASSIGN(const auto ids, installed_checkpoints(file_system, data_dir));
  for (const uint64_t id : ids) {
    const auto metadata = read_checkpoint_metadata(file_system, data_dir, id);
    if (!metadata && !is_damage(metadata.error())) return std::unexpected(metadata.error());
    if (!metadata) {
      named.is_partial = true;
      continue;
    }
    CHECK(metadata->id == id);
    for (const CheckpointFileInfo& file : metadata->files) named.directories.insert(file.directory);
  }
  return {};
}

Result<void> rename_in_checkpoints(FileSystem& file_system, const std::string& data_dir,
                                   const RenameDirectory& rename) {
  ATOLL_ASSIGN(const auto ids, installed_checkpoints(file_system, data_dir));
  for (const uint64_t id : ids) {
    auto metadata = read_checkpoint_metadata(file_system, data_dir, id);
    if (!metadata && !is_damage(metadata.error())) return std::unexpected(metadata.error());
    if (!metadata) continue;
    CHECK(metadata->id == id);
    for (CheckpointFileInfo& file : metadata->files) {
      ATOLL_TRY(rename_in(file.directory, rename));
    }
    // The checkpoint is installed already, so its end epoch is durable.
    ATOLL_TRY(install_checkpoint(file_system, data_dir, *metadata, metadata->end_epoch));
  }
  return {};
}

}  // namespace

Result<NamedDirectories> named_directories(FileSystem& file_system, const std::string& data_dir) {
  NamedDirectories named;
  const std::string savepoint = savepoint_path(data_dir);
  for (const std::string& path : {savepoint, savepoint + ".discarding"}) {
    ATOLL_TRY(add_of_savepoint(file_system, path, named));
  }
  ATOLL_ASSIGN(auto ids, ids_of_metadata(file_system, data_dir));
  for (const uint32_t id : ids) {
    auto metadata = read_snapshot_metadata(file_system, data_dir, id);
    if (!metadata) {
      if (!is_damage(metadata.error())) return std::unexpected(metadata.error());
      named.is_partial = true;
      continue;
    }
    for (const SnapshotFilePlace& file : metadata->files) named.directories.insert(file.directory);
  }
  ATOLL_TRY(add_of_checkpoints(file_system, data_dir, named));
  return named;
}

Result<void> rename_directories(FileSystem& file_system, const std::string& data_dir,
                                const RenameDirectory& rename) {
  ATOLL_ASSIGN(auto ids, ids_of_metadata(file_system, data_dir));
  for (const uint32_t id : ids) {
    auto metadata = read_snapshot_metadata(file_system, data_dir, id);
    if (!metadata && !is_damage(metadata.error())) return std::unexpected(metadata.error());
    if (!metadata) continue;
    for (SnapshotFilePlace& file : metadata->files) {
      ATOLL_TRY(rename_in(file.directory, rename));
    }
    ATOLL_TRY(write_snapshot_metadata(file_system, data_dir, *metadata));
  }
  ATOLL_TRY(rename_in_checkpoints(file_system, data_dir, rename));
  return rename_in_savepoint(file_system, data_dir, rename);
}

}  // namespace atolldb
