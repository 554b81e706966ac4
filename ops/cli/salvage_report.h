// Finds the report that a salvage has written (engine/recovery/salvage.h).
#pragma once

#include <string>

namespace atolldb::cli {

/// Returns the path of the newest report in the data directory, or an empty text if there is none.
/// The numbers of reports do not show which one is newest: `--discard-data` takes some numbers, and
/// a number is free again when its files are deleted.
std::string newest_salvage_report(const std::string& data_dir);

}  // namespace atolldb::cli
