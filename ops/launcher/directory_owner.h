// Ownership of data directories. The file `owner` names the cluster of a directory, and the place
// where the directory was (R47, R50). Log files of two clusters have names of the same form. So a
// directory has one owner, whether that cluster runs or not. A copy has the owner file of its
// original.
#pragma once

#include <string>
#include <vector>

#include "engine/recovery/named_directories.h"
#include "ops/launcher/directory_location.h"
#include "ops/launcher/owner_file.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// The directories of a cluster. They exist, differ, and are locked.
struct DataDirectories {
  std::string cluster;
  std::string data_dir;
  std::vector<std::string> configured;  // for logs, besides data_dir
  std::vector<std::string> left;        // named by the data, not by the config
  NamedDirectories named;               // named by the data, missing ones included
};

/// Checks data_dir. Called before any other file in it is read. Returns code identity if data_dir
/// is not where its owner file says; the message names both forms of `atoll data adopt`. Returns
/// code failed if data_dir is a log directory of another cluster.
Result<void> check_data_directory(FileSystem& file_system, const std::string& data_dir,
                                  const LocateDirectory& locate = locate_directory);

/// Checks each directory as check_data_directory checks data_dir, and changes nothing. Returns code
/// failed if a directory belongs to another cluster. The message names the directory and that
/// cluster, and says what to do.
Result<void> check_directories(FileSystem& file_system, const DataDirectories& directories,
                               const LocateDirectory& locate = locate_directory);

/// Checks all directories, then claims the configured ones durably. data_dir gets an id at its
/// first use and keeps it even if its data are discarded. Each other directory gets a role.
/// Converts owner files of older versions. If a check fails, nothing is changed.
Result<void> claim_directories(FileSystem& file_system, const DataDirectories& directories,
                               const LocateDirectory& locate = locate_directory);

/// Returns whether an owner file of an older version names the data directory at this canonical
/// path.
bool is_of_path(const DirectoryOwner& owner, const std::string& data_dir);

/// Returns code failed if a directory has log files of a cluster other than data_dir's.
Result<void> refuse_foreign_logs(FileSystem& file_system, const std::string& data_dir,
                                 const std::vector<std::string>& directories);

/// Returns the error "<directory>: is a log directory of cluster ..., give this cluster its own in
/// <key>".
std::unexpected<Error> foreign_directory(const std::string& directory, const DirectoryOwner& owner,
                                         const char* key);
inline constexpr const char* kDirectoriesKey = "`directories` of its [[node]] tables";

}  // namespace atolldb
