// The table of directories that hold the data of a cluster (R48). The file data_dir/directories
// gives each directory a role. The savepoint and the metadata of snapshots name roles; only this
// table has paths.
//
// The role `data` is data_dir itself, wherever it is; the table does not list it. Other roles are
// log-1, log-2, ... No role is given twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

inline constexpr std::string_view kDataRole = "data";

struct DirectoryRole {
  std::string role;
  std::string path;  // absolute, as the config spells it

  bool operator==(const DirectoryRole&) const = default;
};

class DirectoryTable {
 public:
  /// Returns an empty table if the file is missing. Returns code corruption if it is damaged.
  static Result<DirectoryTable> read(FileSystem& file_system, const std::string& data_dir);
  explicit DirectoryTable(std::string data_dir) : data_dir_(std::move(data_dir)) {}

  /// Makes the table durable. Writes it if `add`, `set` or `remove` has changed it. REQUIRES: the
  /// caller holds the lock of data_dir, and data_dir exists.
  Result<void> write(FileSystem& file_system);

  /// Returns the directory's path, or nothing if no directory has the role.
  std::optional<std::string> path_of(std::string_view role) const;
  /// Returns the directory's role, or nothing if it has no role. Follows symbolic links.
  std::optional<std::string> role_of(const std::string& directory) const;
  /// Returns the role of the directory; adds one if it has no role.
  std::string add(const std::string& directory);
  /// Gives the role to this path. The path keeps no other role, and no other path keeps the role.
  void set(const std::string& role, const std::string& path);
  void remove(const std::string& role);
  const std::vector<DirectoryRole>& entries() const { return entries_; }

 private:
  std::string data_dir_;
  std::vector<DirectoryRole> entries_;
  uint64_t last_number_ = 0;  // highest <n> of all roles log-<n> so far
  bool is_changed_ = false;
};

/// Returns data_dir/directories.
std::string directory_table_path(const std::string& data_dir);

/// Returns the path with links and dots resolved in the part that exists.
std::string canonical_path(const std::string& path);

}  // namespace atolldb
