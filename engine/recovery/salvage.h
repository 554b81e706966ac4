// Salvage: a start-up that omits unreadable data, at the request of the data's owner (`atoll up
// --salvage`; R56). Nothing is deleted. Files that the salvaged data do not need are moved aside.
//
//   data_dir/coordinator/salvage_<n>             mark: a salvage is in progress
//   data_dir/discarded-<n>/coordinator/savepoint copy of the savepoint from before the salvage
//   <directory>/discarded-<n>/...                files that were moved aside
//   data_dir/salvage-<n>.json                    report: what was omitted
//
// The mark is removed after all files are moved, so a start-up after a crash continues the salvage.
// That start-up does not find damage that an earlier attempt has already omitted. Therefore the
// report is written before each step that stores data without the damaged part. Later start-ups
// keep its entries.
//
// REQUIRES for all functions: the lock of the data directory is held.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Creates the mark durably, so that the next start-up salvages. Does nothing if a salvage is in
/// progress.
/// Error: code failed if there is no savepoint, because then there is nothing to salvage.
Result<void> begin_salvage(FileSystem& file_system, const std::string& data_dir);

/// Returns the number in a mark's file name, or nothing if the file is no mark.
std::optional<uint32_t> parse_salvage_mark(std::string_view name);

/// Returns the number of the salvage in progress, or nothing if there is none.
Result<std::optional<uint32_t>> find_salvage(FileSystem& file_system, const std::string& data_dir);

/// Returns data_dir/salvage-<n>.json.
std::string salvage_report_path(const std::string& data_dir, uint32_t number);

/// Returns the report, or an empty text if there is none yet.
Result<std::string> read_salvage_report(FileSystem& file_system, const std::string& data_dir,
                                        uint32_t number);

/// Replaces the report durably. A crash leaves the old one or the new one.
Result<void> write_salvage_report(FileSystem& file_system, const std::string& data_dir,
                                  uint32_t number, const std::string& report);

/// Removes the mark of a salvage that was refused before it stored anything, so that later
/// start-ups are not salvages. A salvage with a report may have stored data, so its mark is kept.
Result<void> give_up_salvage(FileSystem& file_system, const std::string& data_dir, uint32_t number);

/// Removes the mark, so the salvage is over.
/// REQUIRES: the report is complete.
Result<void> end_salvage(FileSystem& file_system, const std::string& data_dir, uint32_t number);

/// Moves files from <directory>/<folder>/ to <directory>/discarded-<n>/<folder>/, one after the
/// other. Each move is durable before the next one.
Result<void> move_aside(FileSystem& file_system, const std::vector<std::string>& paths,
                        uint32_t number);

}  // namespace atolldb
