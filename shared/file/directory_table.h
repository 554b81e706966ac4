// Which directories hold the data of a cluster: the file data_dir/directories gives each a role
// (rule R48). Savepoint and metadata of snapshots name roles; this table alone has paths.
//
// The role `data` is data_dir itself, wherever that is; the table does not list it. Others are
// log-1, log-2, ...; no role is given twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/error.h"
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
  /// Returns an empty table if the file is missing. Damaged: code corruption.
  static Result<DirectoryTable> read(FileSystem& file_system, const std::string& data_dir);
  explicit DirectoryTable(std::string data_dir) : data_dir_(std::move(data_dir)) {}

  /// Durable when it returns. Does nothing if the table is as the file. REQUIRES: the lock of
  /// data_dir, and data_dir exists.
  Result<void> write(FileSystem& file_system);

  /// Returns nothing if no directory has the role.
  std::optional<std::string> path_of(std::string_view role) const;
  /// Returns nothing if the directory has no role. Links do not matter.
  std::optional<std::string> role_of(const std::string& directory) const;
  /// Returns the role of the directory, which gets one if it has none.
  std::string add(const std::string& directory);
  /// Gives the role to this path, and to no other one.
  void set(const std::string& role, const std::string& path);
  void remove(const std::string& role);
  const std::vector<DirectoryRole>& entries() const { return entries_; }

 private:
  std::string data_dir_;
  std::vector<DirectoryRole> entries_;
  uint64_t last_number_ = 0;  // of a role log-<n>
  bool is_changed_ = false;
};

/// data_dir/directories
std::string directory_table_path(const std::string& data_dir);

/// The path without links and dots, as far as it exists.
std::string canonical_path(const std::string& path);

}  // namespace atolldb
