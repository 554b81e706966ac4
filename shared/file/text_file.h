// Small text files that are replaced as a whole: owner files, tables of directories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Limit for the size of text files, for reading and writing.
inline constexpr uint64_t kMaxTextFileBytes = uint64_t{16} << 20;

/// Returns the text, or nothing if the file does not exist. Returns code corruption if it is larger
/// than kMaxTextFileBytes.
Result<std::optional<std::string>> read_text_file(FileSystem& file_system, const std::string& path);

/// Replaces the file by a rename. Durable on return. A crash leaves the old text or the new one.
/// Newlines pad the text to whole blocks. Returns code resources if it is larger than
/// kMaxTextFileBytes. REQUIRES: the directory exists, and no other process replaces the file.
Result<void> replace_text_file(FileSystem& file_system, const std::string& path, std::string text);

}  // namespace atolldb
