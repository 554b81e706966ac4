// Which directories the data of a cluster names (rule R50): all of them are locked and identified
// before a start reads any.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct NamedDirectories {
  std::set<std::string> directories;  // data_dir among them, if it is named
  /// Savepoint or metadata could not be read: there may be more.
  bool is_partial = false;
};

/// Those that a slot of the savepoint or metadata of any snapshot names, an interrupted discard's
/// savepoint included. Damaged files are passed over. REQUIRES: the lock of data_dir.
Result<NamedDirectories> named_directories(FileSystem& file_system, const std::string& data_dir);

/// Returns what a directory is called from now on.
using RenameDirectory = std::function<Result<std::string>(const std::string& directory)>;

/// Writes savepoint and metadata again, durably, in the format of today, with these names; damaged
/// files stay as they are. A crash amid it is mended by the next call. REQUIRES: the lock of
/// data_dir; `rename` answers the same when it is asked about its own answer.
Result<void> rename_directories(FileSystem& file_system, const std::string& data_dir,
                                const RenameDirectory& rename);

}  // namespace atolldb
