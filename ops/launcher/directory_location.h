// Where a directory is, by what neither a reboot nor a remount changes (rule R47): a directory
// that is not where its owner file says is a copy, or was moved.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "shared/error.h"

namespace atolldb {

/// An empty text or a zero: unknown, which differs from nothing. Device numbers are none of it: a
/// remount may change them.
struct DirectoryLocation {
  std::string path;         // canonical
  std::string file_system;  // its own id: "uuid ...", "fsid ..."
  uint64_t inode = 0;
  std::string machine;   // /etc/machine-id
  std::string hardware;  // id of the machine's board, if this user may read it

  bool operator==(const DirectoryLocation&) const = default;
};

/// Finds the location of a directory. Tests pass their own.
using LocateDirectory = std::function<Result<DirectoryLocation>(const std::string& directory)>;

/// Asks the kernel. Code failed: the directory cannot be examined.
Result<DirectoryLocation> locate_directory(const std::string& directory);

/// Says how the two differ; returns an empty text if they may be the same place.
std::string difference(const DirectoryLocation& recorded, const DirectoryLocation& present);

}  // namespace atolldb
