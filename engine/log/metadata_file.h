// Files in data_dir/coordinator that name the files of a snapshot or a checkpoint. Such a file is
// written once, as a whole: a header, the body, then zeros up to a multiple of kIoBlockBytes. Its
// body names directories by their roles (R48).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "shared/base/error.h"
#include "shared/file/directory_table.h"
#include "shared/file/file.h"

namespace atolldb {

/// A kind of metadata file.
struct MetadataFormat {
  uint32_t magic;
  uint32_t version;         // of files that are written
  uint32_t oldest_version;  // that can be read
  const char* owner;        // for messages, for example "a snapshot"
};

/// Decodes the body of a file of a version. Returns an empty text, or the reason why it is invalid.
using DecodeMetadata = std::function<std::string(std::span<const std::byte> body, uint32_t version,
                                                 const DirectoryTable& table)>;

/// Writes the file `path`, and syncs it before it gets its name. `table` has the roles of all
/// directories in `body`, and is durable before the file. Checks that `decode` accepts the body.
/// A file that a crash has left at `path`.new is replaced. Errors: those of the file system.
Result<void> write_metadata_file(FileSystem& file_system, const std::string& data_dir,
                                 const std::string& path, const MetadataFormat& format,
                                 std::span<const std::byte> body, DirectoryTable& table,
                                 const DecodeMetadata& decode);

/// Reads the file and decodes its body. Errors: those of the file system; code corruption, with the
/// path, if the file is missing or damaged.
Result<void> read_metadata_file(FileSystem& file_system, const std::string& data_dir,
                                const std::string& path, const MetadataFormat& format,
                                const DecodeMetadata& decode);

}  // namespace atolldb
