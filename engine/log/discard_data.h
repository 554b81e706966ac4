// Moves what a data directory holds aside, for a start from nothing: nothing is deleted. And which
// files of logs there are.
//
//   data_dir/coordinator/*        -> data_dir/discarded-<n>/coordinator/*
//   <directory>/node<k>/log*      -> <directory>/discarded-<n>/node<k>/log*
//   <directory>/node<k>/snapshot* -> <directory>/discarded-<n>/node<k>/snapshot*
//
// data_dir/discarded-<n> gets a table of directories of its own (directory_table.h).
//
// The savepoint goes first to savepoint.discarding, which says that a discard is under way, and
// arrives last: a crash at any time is finished by the next call, into the same discarded-<n>. If
// there is none, an empty file takes its part. No file is moved over another one.
// REQUIRES throughout: the lock of the data directory, and no process that writes to it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/log/log_files.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct LogFilePlace {
  std::string directory;  // its node<k>/ holds the file
  uint32_t node = 0;
  LogFileName name;
};

/// All log files of the directories, in order; directories that are missing have none.
Result<std::vector<LogFilePlace>> log_files_in(FileSystem& file_system,
                                               const std::set<std::string>& directories);

/// Code failed if a crash interrupted discard_data.
Result<void> refuse_unfinished_discard(FileSystem& file_system, const std::string& data_dir);

/// `directories`: as for examine; those of the savepoint, if it can be read, are known, and then
/// files of other clusters stay where they are. Returns the directories that hold the old files
/// now; none if there was nothing to move. Until it returns without an error the data directory
/// must not be used.
Result<std::vector<std::string>> discard_data(FileSystem& file_system, const std::string& data_dir,
                                              const std::vector<std::string>& directories = {});

}  // namespace atolldb
