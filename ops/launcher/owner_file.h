// The file `owner` in data_dir and in each log directory. It names the cluster and role of the
// directory, and where the directory was when the file was written (R47).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ops/launcher/directory_location.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct DirectoryOwner {
  std::string id;            // id of the cluster's data directory
  bool is_data_dir = false;  // false: a log directory of that data directory's cluster
  std::string cluster;       // for messages; cluster and data_dir may be out of date
  std::string data_dir;
  std::string role;  // role in the directory table; empty: an older version wrote the file
  std::optional<DirectoryLocation> location;  // no value: an older version wrote the file

  bool operator==(const DirectoryOwner&) const = default;
};

/// Returns <directory>/owner.
std::string owner_path(const std::string& directory);
/// data_dir/owner.restoring: a restore renames it to the owner file of data_dir at its end (R66).
std::string restoring_path(const std::string& data_dir);
/// data_dir/owner.adopting: the adoption renames it to the owner file of data_dir at its end.
std::string adopting_path(const std::string& data_dir);

/// Returns a new random id.
std::string new_owner_id();

/// Returns an incarnation number for the first start of a copy, far above `largest` and at a random
/// distance. Incarnation numbers name the cluster to which a session, a reply and a `kv.commit`
/// request belong. So neither the copy nor the original accepts requests or replies of the other.
uint64_t distant_incarnation(uint64_t largest);

/// Returns nothing if the directory has no owner file. Returns code corruption if the file is
/// damaged.
Result<std::optional<DirectoryOwner>> read_owner(FileSystem& file_system,
                                                 const std::string& directory);
/// Does the same as `read_owner`, for the file at `path`.
Result<std::optional<DirectoryOwner>> read_owner_file(FileSystem& file_system,
                                                      const std::string& path);

/// Replaces the file durably. A crash leaves the previous state or `owner`.
Result<void> write_owner(FileSystem& file_system, const std::string& directory,
                         const DirectoryOwner& owner);
Result<void> write_owner_file(FileSystem& file_system, const std::string& path,
                              const DirectoryOwner& owner);

}  // namespace atolldb
