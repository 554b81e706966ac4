// Small files of text that are replaced as a whole: owner files, tables of directories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// The largest text file that is read or written.
inline constexpr uint64_t kMaxTextFileBytes = uint64_t{16} << 20;

/// Returns the text, or nothing if there is no such file. Larger than kMaxTextFileBytes: code
/// corruption.
Result<std::optional<std::string>> read_text_file(FileSystem& file_system, const std::string& path);

/// Replaces the file by a rename; durable when it returns. A crash leaves the old text or the new
/// one. Newlines pad the text to whole blocks. Larger than kMaxTextFileBytes: code resources.
/// REQUIRES: the directory exists, and no other process replaces the file.
Result<void> replace_text_file(FileSystem& file_system, const std::string& path, std::string text);

}  // namespace atolldb
