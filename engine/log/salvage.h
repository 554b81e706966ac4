// A start without what cannot be read, which the owner of the data asks for (`atoll up --salvage`;
// rule R56). Nothing is deleted: what the salvaged data do not need any more is moved aside.
//
//   data_dir/coordinator/salvage_<n>             a salvage is under way
//   data_dir/discarded-<n>/coordinator/savepoint a copy of the savepoint of before
//   <directory>/discarded-<n>/...                files that were moved aside
//
// The mark is there until all is moved: a start after a crash goes on with the salvage.
// REQUIRES throughout: the lock of the data directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Durably says that the next start salvages; no-op if one is under way. Without a savepoint there
/// is nothing to salvage: code failed.
Result<void> begin_salvage(FileSystem& file_system, const std::string& data_dir);

/// The number of the salvage under way; nothing: there is none.
Result<std::optional<uint32_t>> find_salvage(FileSystem& file_system, const std::string& data_dir);

/// Writes `report` to salvage_report_path, then takes the mark away.
Result<void> end_salvage(FileSystem& file_system, const std::string& data_dir, uint32_t number,
                         const std::string& report);

/// data_dir/salvage-<n>.json
std::string salvage_report_path(const std::string& data_dir, uint32_t number);

/// Moves files from <directory>/<folder>/ to <directory>/discarded-<n>/<folder>/, one after the
/// other, each durably before the next.
Result<void> move_aside(FileSystem& file_system, const std::vector<std::string>& paths,
                        uint32_t number);

}  // namespace atolldb
