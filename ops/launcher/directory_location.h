// Location of a directory, by properties that neither a reboot nor a remount changes (R47). A
// directory that is not where its owner file says was copied or moved.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

/// An empty text or a zero means unknown, and equals every value. Device numbers are not included,
/// because a remount may change them.
struct DirectoryLocation {
  std::string path;         // canonical
  std::string file_system;  // id of the file system: "uuid ...", "fsid ..."
  uint64_t inode = 0;       // 0 if a remount would change it
  std::string machine;      // /etc/machine-id
  std::string hardware;     // id of the machine's board, if this user may read it

  bool operator==(const DirectoryLocation&) const = default;
};

/// Finds the location of a directory. Tests pass their own function.
using LocateDirectory = std::function<Result<DirectoryLocation>(const std::string& directory)>;

/// Finds the location through the kernel. Returns code failed if the directory cannot be examined.
Result<DirectoryLocation> locate_directory(const std::string& directory);

/// Returns how the two locations differ, or an empty text if they may be the same place.
std::string difference(const DirectoryLocation& recorded, const DirectoryLocation& present);

}  // namespace atolldb
