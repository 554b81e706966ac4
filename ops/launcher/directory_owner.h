// Whose a directory of logs is, said in a file `owner` in it: log files of two clusters have names
// of the same form, so a directory has one owner, for ever, whether that one runs or not.
#pragma once

#include <string>
#include <vector>

#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Makes all these directories the cluster's, durably: data_dir, which gets an id at its first use
/// and keeps it over all that is discarded, and those that name this id. Code failed, and nothing
/// is changed, if one of them is another cluster's: names the directory, that cluster, the way out.
/// REQUIRES: the directories exist, differ, and are locked.
Result<void> claim_directories(FileSystem& file_system, const std::string& cluster,
                               const std::string& data_dir,
                               const std::vector<std::string>& log_directories);

}  // namespace atolldb
