// Moves the content of a data directory aside, so that the next start-up begins with an empty
// database. Deletes nothing.
//
//   data_dir/coordinator/         -> data_dir/discarded-<n>/coordinator/
//     (savepoint, DDL log, metadata of snapshots, mark of a salvage in progress)
//   <directory>/node<k>/log*      -> <directory>/discarded-<n>/node<k>/log*
//   <directory>/node<k>/snapshot* -> <directory>/discarded-<n>/node<k>/snapshot*
//
// data_dir/discarded-<n> gets its own table of directories (directory_table.h).
//
// The savepoint is renamed to savepoint.discarding first and moved last. The renamed file marks a
// discard in progress: after a crash at any time, the next call finishes the discard, into the same
// discarded-<n>. If there is no savepoint, an empty file takes its place. No file overwrites
// another.
//
// REQUIRES for all functions: the lock of the data directory is held; no process writes to the
// directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Returns an error with code failed if a crash interrupted discard_data.
Result<void> refuse_unfinished_discard(FileSystem& file_system, const std::string& data_dir);

/// Moves the data aside. `directories`: all configured directories of the nodes. The function adds
/// those that the savepoint names. If the savepoint can be read, files of other clusters are not
/// moved. Returns the directories that now hold the old files, or none if there was nothing to
/// move. The data directory must not be used until the function has returned without an error.
Result<std::vector<std::string>> discard_data(FileSystem& file_system, const std::string& data_dir,
                                              const std::vector<std::string>& directories = {});

}  // namespace atolldb
