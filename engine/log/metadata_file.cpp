#include "engine/log/metadata_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/format/crc32c.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

struct FileHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of the bytes after this field, up to the end of the file
  uint32_t version;
  uint32_t spare;
  uint64_t length;  // bytes of the body
};
static_assert(sizeof(FileHeader) == 24);
constexpr size_t kMetadataChecked = offsetof(FileHeader, version);

/// Returns an empty text, or the reason why these bytes are no such file.
std::string decode_file(std::span<const std::byte> bytes, const MetadataFormat& format,
                        const DirectoryTable& table, const DecodeMetadata& decode) {
  FileHeader header = {};
  if (bytes.size() < sizeof header) return "it ends within its header";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != format.magic) {
    return fmt::format("its magic number is 0x{:08x}, not 0x{:08x}", header.magic, format.magic);
  }
  if (header.crc != crc32c(bytes.subspan(kMetadataChecked))) return "its checksum is wrong";
  if (header.version > format.version || header.version < format.oldest_version) {
    return fmt::format("its format has version {}, this program reads up to {}", header.version,
                       format.version);
  }
  if (header.length > bytes.size() - sizeof header) return "its length is beyond its end";
  return decode(bytes.subspan(sizeof header, header.length), header.version, table);
}

std::unexpected<Error> damaged(const std::string& path, const MetadataFormat& format,
                               const std::string& reason) {
  return make_error(ExitCode::corruption,
                    path + ": metadata of " + format.owner + ": " + reason +
                        ": restore a backup, or start empty with `atoll up --discard-data`");
}

/// Creates a file with these bytes and syncs it. Replaces a file that a crash has left.
Result<void> write_new_file(FileSystem& file_system, const std::string& path,
                            std::span<const std::byte> bytes) {
  CHECK(bytes.size() % kIoBlockBytes == 0);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (exists) {
    ATOLL_TRY(file_system.remove(path));
  }
  ATOLL_ASSIGN(auto file, file_system.create(path, bytes.size()));
  const std::array<std::span<const std::byte>, 1> slices = {bytes};
  ATOLL_TRY(file->write(0, slices));
  return file->sync();
}

}  // namespace

Result<void> write_metadata_file(FileSystem& file_system, const std::string& data_dir,
                                 const std::string& path, const MetadataFormat& format,
                                 std::span<const std::byte> body, DirectoryTable& table,
                                 const DecodeMetadata& decode) {
  FileHeader header = {format.magic, 0, format.version, 0, body.size()};
  IoBuffer buffer(sizeof header + body.size());
  const std::span<std::byte> bytes = buffer.bytes();
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(body, bytes.begin() + sizeof header);
  header.crc = crc32c(bytes.subspan(kMetadataChecked));
  std::memcpy(bytes.data(), &header, sizeof header);
  CHECK(decode_file(bytes, format, table, decode).empty());

  const std::string directory = coordinator_directory(data_dir);
  ATOLL_TRY(file_system.make_directory(directory));
  // The table is durable before the file that names its roles.
  ATOLL_TRY(table.write(file_system));
  ATOLL_TRY(write_new_file(file_system, path + ".new", bytes));
  ATOLL_TRY(file_system.rename(path + ".new", path));
  return file_system.sync_directory(directory);
}

Result<void> read_metadata_file(FileSystem& file_system, const std::string& data_dir,
                                const std::string& path, const MetadataFormat& format,
                                const DecodeMetadata& decode) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return damaged(path, format, "the file is missing");
  ATOLL_ASSIGN(const auto file, file_system.open_for_reading(path));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  IoBuffer buffer(size);
  ATOLL_ASSIGN(const uint64_t count, file->read(0, buffer.bytes()));
  // The table is read after the file, so that it has every role that the file names.
  ATOLL_ASSIGN(const auto table, DirectoryTable::read(file_system, data_dir));
  const std::string reason = decode_file(buffer.bytes().first(count), format, table, decode);
  return reason.empty() ? Result<void>() : damaged(path, format, reason);
}

}  // namespace atolldb
