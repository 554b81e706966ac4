// Finds the directories that the data of a cluster names (R50). A start-up locks and identifies all
// these directories before it reads any.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct NamedDirectories {
  std::set<std::string> directories;  // includes data_dir if a file names it
  /// True if the savepoint or some metadata could not be read, so that more directories may exist.
  bool is_partial = false;
};

/// Returns the directories that a slot of the savepoint, or the metadata of any snapshot or
/// checkpoint, names. This
/// includes the savepoint of an interrupted discard. Damaged files are skipped.
/// REQUIRES: the lock of data_dir is held.
Result<NamedDirectories> named_directories(FileSystem& file_system, const std::string& data_dir);

/// Returns the new name of a directory.
using RenameDirectory = std::function<Result<std::string>(const std::string& directory)>;

/// Rewrites savepoint and metadata durably, in the current format, with the new directory names.
/// Damaged files stay unchanged. After a crash during the call the next call completes the rewrite.
/// REQUIRES: the lock of data_dir is held; `rename` is idempotent.
Result<void> rename_directories(FileSystem& file_system, const std::string& data_dir,
                                const RenameDirectory& rename);

}  // namespace atolldb
