#include "ops/launcher/directory_owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"

namespace atolldb {
namespace {

std::unexpected<Error> not_its_place(const std::string& directory, const std::string& difference) {
  return make_error(
      ExitCode::identity,
      fmt::format(
          "{}: is not at the place in its owner file: {}: nothing in it was read: run `atoll "
          "data adopt --moved` if it was moved, or `atoll data adopt --copy` if it is a "
          "copy",
          directory, difference));
}

/// Refuses a data directory that has data but no owner file.
Result<void> refuse_unowned_data(FileSystem& file_system, const std::string& data_dir) {
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_ASSIGN(auto exists, file_system.exists(directory));
  if (!exists) return {};
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  if (names.empty()) return {};
  return make_error(ExitCode::identity,
                    fmt::format("{}: the file is missing, but {} holds {}, whose owner is unknown: "
                                "restore the file from a backup",
                                owner_path(data_dir), directory, names.front()));
}

/// Refuses a directory whose restore has not ended (R66).
Result<void> refuse_unfinished_restore(FileSystem& file_system, const std::string& data_dir) {
  const std::string path = restoring_path(data_dir);
  ATOLL_ASSIGN(auto exists, file_system.exists(path));
  if (!exists) return {};
  return make_error(ExitCode::identity,
                    fmt::format("{}: a restore into {} runs or was interrupted: run `atoll "
                                "restore` with --to {} again, or remove the directory",
                                path, data_dir, data_dir));
}

/// Returns how the directory differs from its owner file; empty: not at all. `data_dir`: its
/// canonical path.
Result<std::string> find_difference(const std::string& directory, const DirectoryOwner& owner,
                                    const std::string& data_dir, const LocateDirectory& locate) {
  if (!owner.location) {
    if (is_of_path(owner, data_dir)) return "";
    return fmt::format("data_dir was {} and is {}", owner.data_dir, data_dir);
  }
  ATOLL_ASSIGN(auto present, locate(directory));
  return difference(*owner.location, present);
}

/// The owner files of data_dir and of the log directories, and the directory table.
struct Claims {
  std::optional<DirectoryOwner> own;  // owner file of data_dir; no value: data_dir is new
  std::string data_path;              // canonical path of data_dir
  DirectoryTable table;
  std::map<std::string, std::optional<DirectoryOwner>> owners;
};

Result<Claims> read_data_claim(FileSystem& file_system, const std::string& data_dir,
                               const LocateDirectory& locate) {
  Claims claims{{}, "", DirectoryTable(data_dir), {}};
  ATOLL_ASSIGN(auto own, read_owner(file_system, data_dir));
  claims.own = std::move(own);
  ATOLL_ASSIGN(auto present, locate(data_dir));
  claims.data_path = present.path;
  if (!claims.own) {
    ATOLL_TRY(refuse_unfinished_restore(file_system, data_dir));
    ATOLL_TRY(refuse_unowned_data(file_system, data_dir));
    return claims;
  }
  if (!claims.own->is_data_dir) return foreign_directory(data_dir, *claims.own, "cluster.data_dir");
  ATOLL_ASSIGN(auto differs, find_difference(data_dir, *claims.own, claims.data_path, locate));
  if (!differs.empty()) return not_its_place(data_dir, differs);
  return claims;
}

/// Refuses a directory that has a role in the table but no owner file. Either its volume is not
/// mounted, or a damaged owner file was removed.
Result<void> refuse_vanished(FileSystem& file_system, const Claims& claims,
                             const std::string& directory) {
  const auto role = claims.table.role_of(directory);
  if (!role || !claims.own || !claims.own->location) return {};
  ATOLL_ASSIGN(auto files, log_files_in(file_system, {directory}));
  if (!files.empty()) return {};  // refuse_foreign_logs names the cluster of these files
  return make_error(
      ExitCode::identity,
      fmt::format("{}: has no owner file, but this cluster keeps logs there ({}): mount its file "
                  "system; if what it held is lost for good, run `atoll data adopt --moved`",
                  directory, *role));
}

/// Refuses a directory if the table gives the role in its owner file to another directory.
Result<void> refuse_other_role(const Claims& claims, const std::string& directory,
                               const DirectoryOwner& owner) {
  const auto path = claims.table.path_of(owner.role);
  if (owner.role.empty() || !path || canonical_path(*path) == canonical_path(directory)) return {};
  return not_its_place(directory, fmt::format("it is {}, which {} says is {}", owner.role,
                                              directory_table_path(claims.own->data_dir), *path));
}

Result<void> check_log_directory(FileSystem& file_system, const Claims& claims,
                                 const std::string& directory, const LocateDirectory& locate) {
  const std::optional<DirectoryOwner>& owner = claims.owners.at(directory);
  if (!owner) return refuse_vanished(file_system, claims, directory);
  if (owner->is_data_dir || !claims.own || claims.own->id != owner->id) {
    return foreign_directory(directory, *owner, kDirectoriesKey);
  }
  ATOLL_ASSIGN(auto differs, find_difference(directory, *owner, claims.data_path, locate));
  if (!differs.empty()) return not_its_place(directory, differs);
  return refuse_other_role(claims, directory, *owner);
}

/// Reads and checks all directories.
Result<Claims> read_claims(FileSystem& file_system, const DataDirectories& directories,
                           const LocateDirectory& locate) {
  ATOLL_ASSIGN(auto claims, read_data_claim(file_system, directories.data_dir, locate));
  ATOLL_ASSIGN(auto table, DirectoryTable::read(file_system, directories.data_dir));
  claims.table = std::move(table);
  std::vector<std::string> free;
  for (const auto* group : {&directories.configured, &directories.left}) {
    for (const std::string& directory : *group) {
      ATOLL_ASSIGN(auto owner, read_owner(file_system, directory));
      claims.owners[directory] = std::move(owner);
      ATOLL_TRY(check_log_directory(file_system, claims, directory, locate));
      if (!claims.owners[directory]) free.push_back(directory);
    }
  }
  ATOLL_TRY(refuse_foreign_logs(file_system, directories.data_dir, free));
  return claims;
}

/// Removes roles that neither the config nor the data name.
void forget_roles(DirectoryTable& table, const DataDirectories& directories) {
  if (directories.named.is_partial) return;
  std::set<std::string> kept;
  for (const std::string& path : directories.configured) kept.insert(canonical_path(path));
  for (const std::string& path : directories.named.directories) kept.insert(canonical_path(path));
  const std::vector<DirectoryRole> entries = table.entries();
  for (const DirectoryRole& entry : entries) {
    if (!kept.contains(canonical_path(entry.path))) table.remove(entry.role);
  }
}

Result<void> write_data_owner(FileSystem& file_system, const DataDirectories& directories,
                              const std::string& id, const LocateDirectory& locate) {
  ATOLL_ASSIGN(auto location, locate(directories.data_dir));
  return write_owner(file_system, directories.data_dir,
                     {id, true, directories.cluster, directories.data_dir, std::string(kDataRole),
                      std::move(location)});
}

}  // namespace

bool is_of_path(const DirectoryOwner& owner, const std::string& data_dir) {
  return canonical_path(owner.data_dir) == data_dir;
}

std::unexpected<Error> foreign_directory(const std::string& directory, const DirectoryOwner& owner,
                                         const char* key) {
  return make_error(
      ExitCode::failed,
      fmt::format("{}: is {} of cluster \"{}\" (data_dir {}), which keeps its commits there: give "
                  "this cluster its own in {}, or move the old files aside if that cluster is gone",
                  directory, owner.is_data_dir ? "the data directory" : "a log directory",
                  owner.cluster, owner.data_dir, key));
}

Result<void> refuse_foreign_logs(FileSystem& file_system, const std::string& data_dir,
                                 const std::vector<std::string>& directories) {
  if (directories.empty()) return {};
  ATOLL_ASSIGN(const auto files,
               log_files_in(file_system, {directories.begin(), directories.end()}));
  if (files.empty()) return {};
  auto savepoint = read_savepoint(file_system, data_dir);
  // If the savepoint is damaged, no log file is known to belong to this cluster.
  const bool is_known = savepoint && *savepoint;
  if (!savepoint && savepoint.error().code != ExitCode::corruption) {
    return std::unexpected(savepoint.error());
  }
  for (const LogFilePlace& place : files) {
    ATOLL_ASSIGN(auto owner, owner_of(file_system, place));
    if (!owner || (is_known && *owner == (*savepoint)->savepoint.cluster_uuid)) continue;
    return make_error(ExitCode::failed,
                      path_of(place) +
                          ": is a log of another cluster: give this cluster its own "
                          "directories, or move that cluster's files elsewhere");
  }
  return {};
}

Result<void> check_data_directory(FileSystem& file_system, const std::string& data_dir,
                                  const LocateDirectory& locate) {
  ATOLL_TRY(read_data_claim(file_system, data_dir, locate));
  return {};
}

Result<void> check_directories(FileSystem& file_system, const DataDirectories& directories,
                               const LocateDirectory& locate) {
  ATOLL_TRY(read_claims(file_system, directories, locate));
  return {};
}

Result<void> claim_directories(FileSystem& file_system, const DataDirectories& directories,
                               const LocateDirectory& locate) {
  ATOLL_ASSIGN(auto claims, read_claims(file_system, directories, locate));
  const bool is_new = !claims.own;
  const std::string id = is_new ? new_owner_id() : claims.own->id;
  if (is_new) {
    ATOLL_TRY(write_data_owner(file_system, directories, id, locate));
  }
  // Adds the roles of the owner files to the table first. If there is no table, or if a crash
  // preceded its write, only the owner files have these roles.
  for (const auto& [directory, owner] : claims.owners) {
    if (!owner || owner->role.empty()) continue;
    claims.table.set(owner->role, directory);  // as the config spells the path
  }
  for (const auto& [directory, owner] : claims.owners) {
    if (owner && !owner->role.empty()) continue;
    ATOLL_ASSIGN(auto location, locate(directory));
    ATOLL_TRY(write_owner(file_system, directory,
                          {id, false, directories.cluster, directories.data_dir,
                           claims.table.add(directory), std::move(location)}));
  }
  forget_roles(claims.table, directories);
  // The table is written after the owner files, because a role in it means that the directory has
  // an owner file.
  ATOLL_TRY(claims.table.write(file_system));
  if (is_new || claims.own->location) return {};
  // Converts files of an older version. Done last, so that after an earlier crash the next start-up
  // repeats all steps.
  const auto same = [](const std::string& directory) -> Result<std::string> { return directory; };
  ATOLL_TRY(rename_directories(file_system, directories.data_dir, same));
  return write_data_owner(file_system, directories, id, locate);
}

}  // namespace atolldb
