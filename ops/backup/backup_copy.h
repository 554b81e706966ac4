// Copies, links and checks single files of a backup.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  bool operator==(const FileSum&) const = default;
};

/// Called after each part of a file with its bytes. An error ends the work and is returned.
using OnBytes = std::function<Result<void>(uint64_t bytes)>;

/// Reads the whole file.
Result<FileSum> sum_of_file(FileSystem& file_system, const std::string& path,
                            const OnBytes& on_bytes);

/// Creates `to` with the content of `from`, with the size that `from` has first. Blocks of zeros
/// are allocated and not written. Syncs the file, not its directory. Returns the sum of the copy.
/// Another process may be writing `from`: the copy then has some parts older than others. Returns
/// code corruption if the size is no multiple of kIoBlockBytes.
Result<FileSum> copy_file(FileSystem& file_system, const std::string& from, const std::string& to,
                          const OnBytes& on_bytes);

/// Returns code corruption, with what was expected and found, if the sums differ.
Result<void> check_sum(const std::string& path, const FileSum& expected, const FileSum& found);

}  // namespace atolldb
