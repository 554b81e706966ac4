// Whose a directory of data is, and whether it is where it was: its file `owner` says both (rules
// R47, R50). Log files of two clusters have names of the same form, so a directory has one owner,
// whether that cluster runs or not; and a copy has the owner file of its original.
#pragma once

#include <string>
#include <vector>

#include "engine/snapshot/named_directories.h"
#include "ops/launcher/directory_location.h"
#include "ops/launcher/owner_file.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// The directories of a cluster. All exist, differ, and are locked.
struct DataDirectories {
  std::string cluster;
  std::string data_dir;
  std::vector<std::string> configured;  // with logs, besides data_dir
  std::vector<std::string> left;        // that the data names, and the config does not
  NamedDirectories named;               // by the data, missing ones included
};

/// Before anything else in data_dir is read. Code identity: it is not where its owner file says;
/// names both ways out. Code failed: it is another cluster's directory of logs.
Result<void> check_data_directory(FileSystem& file_system, const std::string& data_dir,
                                  const LocateDirectory& locate = locate_directory);

/// Checks each directory, as check_data_directory does data_dir, and changes nothing. Code failed:
/// one of them is another cluster's; names the directory, that cluster, the way out.
Result<void> check_directories(FileSystem& file_system, const DataDirectories& directories,
                               const LocateDirectory& locate = locate_directory);

/// Checks all, then makes the configured ones the cluster's, durably: data_dir gets an id at its
/// first use and keeps it over all that is discarded; each other one gets a role. What earlier
/// programs wrote is brought up to date. After an error of a check nothing is changed.
Result<void> claim_directories(FileSystem& file_system, const DataDirectories& directories,
                               const LocateDirectory& locate = locate_directory);

/// Whether a directory that earlier programs made the cluster's is of the data directory at this
/// canonical path.
bool is_of_path(const DirectoryOwner& owner, const std::string& data_dir);

/// Code failed if one of the directories has a log of another cluster than data_dir's.
Result<void> refuse_foreign_logs(FileSystem& file_system, const std::string& data_dir,
                                 const std::vector<std::string>& directories);

/// "<directory>: is a log directory of cluster ..., give this cluster its own in <key>".
std::unexpected<Error> foreign_directory(const std::string& directory, const DirectoryOwner& owner,
                                         const char* key);
inline constexpr const char* kDirectoriesKey = "`directories` of its [[node]] tables";

}  // namespace atolldb
