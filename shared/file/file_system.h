// Creates the backend for a cluster's files. Reads and replaces small text files on any backend:
// owner files, tables of directories.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "shared/config/config.h"
#include "shared/file/file.h"
#include "shared/file/file_system_wrappers.h"
#include "shared/file/io_watch.h"
#include "shared/file/posix_file_system.h"

namespace atolldb {

struct FileSystemSettings {
  FileBackend backend = FileBackend::posix;
  EmulatedLatency latency;   ///< all zero: no emulation
  FileWarning warn;          ///< may be empty
  IoWatch* watch = nullptr;  ///< records device calls in progress; null: no record
};

/// Returns the settings in `[durability]`. The emulated latency applies to writes and syncs,
/// that of NVRAM to reads and writes.
FileSystemSettings file_system_settings(const Config::Durability& durability, FileWarning warn = {},
                                        IoWatch* watch = nullptr);

/// Creates a backend without touching any file. REQUIRES: the backend outlives its files.
std::unique_ptr<FileSystem> make_file_system(const FileSystemSettings& settings);

/// Creates the backend `null`, which discards data. REQUIRES: it outlives its files.
std::unique_ptr<FileSystem> make_null_file_system();

/// Limit for the size of text files, for reading and writing.
inline constexpr uint64_t kMaxTextFileBytes = uint64_t{16} << 20;

/// Returns the text, or nothing if the file does not exist. Returns code corruption if it is larger
/// than kMaxTextFileBytes.
Result<std::optional<std::string>> read_text_file(FileSystem& file_system, const std::string& path);

/// Replaces the file by a rename. The new text is durable on return. A crash leaves the old text or
/// the new one. Newlines pad the text to whole blocks. Returns code resources if it is larger than
/// kMaxTextFileBytes. REQUIRES: the directory exists, and no other process replaces the file.
Result<void> replace_text_file(FileSystem& file_system, const std::string& path, std::string text);

}  // namespace atolldb
