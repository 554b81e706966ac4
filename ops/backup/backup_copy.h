// Compares files of backups. Copies and checksums are in engine/archive/file_copy.h.
#pragma once

#include <cstdint>
#include <string>

#include "engine/archive/file_copy.h"
#include "shared/base/error.h"

namespace atolldb {

/// Returns whether two files of `bytes` bytes have equal first blocks and equal last blocks. Files
/// of the same name with different content differ there, because the first block of logs and page
/// files names epochs.
Result<bool> have_equal_ends(FileSystem& file_system, const std::string& one,
                             const std::string& other, uint64_t bytes);

/// Returns code corruption, with what was expected and found, if the sums differ.
Result<void> check_sum(const std::string& path, const FileSum& expected, const FileSum& found);

}  // namespace atolldb
