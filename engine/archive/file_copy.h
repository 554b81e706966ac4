// Copies and checksums of single files, for backups and archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  bool operator==(const FileSum&) const = default;
};

/// Called with each part of a file, in order. A part begins at a multiple of kHugePageBytes, and is
/// aligned to a page. If it returns an error, the work ends with this error.
using OnPart = std::function<Result<void>(std::span<const std::byte> part)>;

/// Reads the whole file. Returns its size and checksum.
Result<FileSum> sum_of_file(FileSystem& file_system, const std::string& path,
                            const OnPart& on_part);

/// Creates `to` with the content of `from`, up to the size that `from` has at the beginning. Does
/// not write parts that are all zeros, because a new file has allocated blocks of zeros. Syncs the
/// file, not its directory. Returns size and checksum of the copy. If another process writes `from`
/// meanwhile, some parts of the copy are older than others. Returns code corruption if the size is
/// no multiple of kIoBlockBytes.
Result<FileSum> copy_file(FileSystem& file_system, const std::string& from, const std::string& to,
                          const OnPart& on_part);

}  // namespace atolldb
