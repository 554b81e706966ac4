#include "engine/checkpoint/checkpoint_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "engine/format/byte_stream.h"
#include "engine/format/crc32c.h"
#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

template <typename Archive>
void fields(Archive& archive, Described<Archive, CheckpointFileInfo>& file) {
  archive(file.directory, file.node, file.writer, file.number, file.bytes, file.records,
          file.checksum);
}

template <typename Archive>
void fields(Archive& archive, Described<Archive, CheckpointStorage>& storage) {
  archive(storage.id);
  archive.enumerator(storage.type, StorageType::none, kLastStorageType);
  archive(storage.name);
}

template <typename Archive>
void fields(Archive& archive, Described<Archive, CheckpointMetadata>& metadata) {
  archive(metadata.id, metadata.replay_epoch, metadata.end_epoch, metadata.cluster_uuid,
          metadata.storages, metadata.files);
}

namespace {

constexpr uint32_t kCheckpointMetaMagic = 0x4d434c41;  // "ALCM"
constexpr uint32_t kCheckpointMetaVersion = 1;
constexpr std::string_view kNamePrefix = "checkpoint_";
constexpr std::string_view kNameSuffix = ".meta";

/// Header of the file. The body follows, then zeros up to a multiple of kIoBlockBytes.
struct MetadataFileHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of the bytes after this field, up to the end of the file
  uint32_t version;
  uint32_t spare;
  uint64_t length;  // bytes of the body
};
static_assert(sizeof(MetadataFileHeader) == 24);
constexpr size_t kCheckpointMetaChecked = offsetof(MetadataFileHeader, version);

bool files_ascend(const CheckpointMetadata& metadata) {
  const auto order = [](const CheckpointFileInfo& file) {
    return std::tuple(file.node, file.writer, file.number);
  };
  return std::ranges::adjacent_find(metadata.files, std::ranges::greater_equal(), order) ==
         metadata.files.end();
}

/// Checks what every checkpoint guarantees.
bool is_plausible(const CheckpointMetadata& metadata) {
  if (metadata.id == 0 || metadata.replay_epoch == 0) return false;
  if (metadata.end_epoch > kMaxEpoch || metadata.replay_epoch > metadata.end_epoch) return false;
  const bool ascend = std::ranges::adjacent_find(metadata.storages, std::ranges::greater_equal(),
                                                 &CheckpointStorage::id) == metadata.storages.end();
  return ascend && files_ascend(metadata) &&
         std::ranges::all_of(metadata.storages,
                             [](const CheckpointStorage& storage) {
                               return storage.id != 0 && storage.type != StorageType::none &&
                                      storage.name.size() <= kMaxStorageName;
                             }) &&
         std::ranges::all_of(metadata.files, [](const CheckpointFileInfo& file) {
           return file.bytes != 0 && file.bytes % kIoBlockBytes == 0 && file.node < kMaxNodes;
         });
}

/// Decodes a file. Returns an empty text, or the reason why it is not metadata.
std::string decode_checkpoint(std::span<const std::byte> bytes, const DirectoryTable& table,
                              CheckpointMetadata& metadata) {
  MetadataFileHeader header = {};
  if (bytes.size() < sizeof header) return "it ends within its header";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kCheckpointMetaMagic) {
    return fmt::format("its magic number is 0x{:08x}, not 0x{:08x}", header.magic,
                       kCheckpointMetaMagic);
  }
  if (header.crc != crc32c(bytes.subspan(kCheckpointMetaChecked))) return "its checksum is wrong";
  if (header.version != kCheckpointMetaVersion) {
    return fmt::format("its format has version {}, this program reads version {}", header.version,
                       kCheckpointMetaVersion);
  }
  if (header.length > bytes.size() - sizeof header) return "its length is beyond its end";
  ByteReader body(bytes.subspan(sizeof header, header.length));
  body(metadata);
  if (!body.is_at_end() || !is_plausible(metadata)) return "its content is invalid";
  for (CheckpointFileInfo& file : metadata.files) {
    auto path = table.path_of(file.directory);
    if (!path) {
      return fmt::format("it names directory {}, which the file `directories` does not list",
                         file.directory);
    }
    file.directory = *std::move(path);
  }
  return {};
}

std::unexpected<Error> damaged_checkpoint(const std::string& path, const std::string& reason) {
  return make_error(ExitCode::corruption,
                    path + ": metadata of a checkpoint: " + reason +
                        ": restore a backup, or start empty with `atoll up --discard-data`");
}

/// Creates a file with these bytes and syncs it. Replaces what a crash in an earlier call has left.
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

/// Returns the id in the name of a metadata file, or nothing for other names.
std::optional<uint64_t> parse_metadata_name(std::string_view name) {
  if (!name.starts_with(kNamePrefix) || !name.ends_with(kNameSuffix)) return std::nullopt;
  uint64_t id = 0;
  const auto [end, error] =
      std::from_chars(name.data() + kNamePrefix.size(), name.data() + name.size(), id);
  if (error != std::errc() || id == 0) return std::nullopt;
  if (fmt::format("{}{}{}", kNamePrefix, id, kNameSuffix) != name) return std::nullopt;
  return id;
}

/// Deletes the checkpoint files of one folder node<k>/, except those of the checkpoint `kept`.
Result<uint64_t> delete_in_folder(FileSystem& file_system, const std::string& folder,
                                  uint64_t kept) {
  CHECK(kept != 0);
  uint64_t deleted = 0;
  ATOLL_ASSIGN(const auto names, file_system.list(folder));
  for (const std::string& name : names) {
    const auto parsed = parse_checkpoint_file_name(name);
    if (!parsed || parsed->checkpoint == kept) continue;
    ATOLL_TRY(file_system.remove(path_in(folder, name)));
    ++deleted;
  }
  return deleted;
}

}  // namespace

std::string checkpoint_metadata_path(const std::string& data_dir, uint64_t id) {
  return path_in(coordinator_directory(data_dir),
                 fmt::format("{}{}{}", kNamePrefix, id, kNameSuffix));
}

bool is_end_durable(const CheckpointMetadata& metadata, uint64_t durable_epoch) {
  DCHECK(metadata.end_epoch <= kMaxEpoch);
  return metadata.end_epoch <= durable_epoch || fault::install_checkpoint_early;
}

Result<void> install_checkpoint(FileSystem& file_system, const std::string& data_dir,
                                const CheckpointMetadata& metadata, uint64_t durable_epoch) {
  CHECK(is_plausible(metadata));
  CHECK(is_end_durable(metadata, durable_epoch));
  ATOLL_ASSIGN(DirectoryTable table, DirectoryTable::read(file_system, data_dir));
  CheckpointMetadata named = metadata;
  for (CheckpointFileInfo& file : named.files) {
    CHECK(file.directory.size() <= kMaxLogPathBytes);
    file.directory = table.add(file.directory);
  }
  ByteWriter body;
  body(named);
  MetadataFileHeader header = {kCheckpointMetaMagic, 0, kCheckpointMetaVersion, 0,
                               body.bytes().size()};
  IoBuffer buffer(sizeof header + body.bytes().size());
  const std::span<std::byte> bytes = buffer.bytes();
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(body.bytes(), bytes.begin() + sizeof header);
  header.crc = crc32c(bytes.subspan(kCheckpointMetaChecked));
  std::memcpy(bytes.data(), &header, sizeof header);
  CheckpointMetadata decoded;
  CHECK(decode_checkpoint(bytes, table, decoded).empty() &&
        decoded.files.size() == metadata.files.size());

  const std::string directory = coordinator_directory(data_dir);
  const std::string path = checkpoint_metadata_path(data_dir, metadata.id);
  ATOLL_TRY(file_system.make_directory(directory));
  // The table is durable before the file that names its roles.
  ATOLL_TRY(table.write(file_system));
  ATOLL_TRY(write_new_file(file_system, path + ".new", bytes));
  ATOLL_TRY(file_system.rename(path + ".new", path));
  return file_system.sync_directory(directory);
}

Result<CheckpointMetadata> read_checkpoint_metadata(FileSystem& file_system,
                                                    const std::string& data_dir, uint64_t id) {
  const std::string path = checkpoint_metadata_path(data_dir, id);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return damaged_checkpoint(path, "the file is missing");
  ATOLL_ASSIGN(const auto file, file_system.open_for_reading(path));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  IoBuffer buffer(size);
  ATOLL_ASSIGN(const uint64_t count, file->read(0, buffer.bytes()));
  // The table is read after the file, so that it has every role that the file names.
  ATOLL_ASSIGN(auto table, DirectoryTable::read(file_system, data_dir));
  CheckpointMetadata metadata;
  const std::string reason = decode_checkpoint(buffer.bytes().first(count), table, metadata);
  if (!reason.empty()) return damaged_checkpoint(path, reason);
  if (metadata.id != id) {
    return damaged_checkpoint(path, fmt::format("it is of checkpoint {}", metadata.id));
  }
  return metadata;
}

Result<std::vector<uint64_t>> installed_checkpoints(FileSystem& file_system,
                                                    const std::string& data_dir) {
  std::vector<uint64_t> ids;
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return ids;
  ATOLL_ASSIGN(const auto names, file_system.list(directory));
  for (const std::string& name : names) {
    if (const auto id = parse_metadata_name(name)) ids.push_back(*id);
  }
  std::ranges::sort(ids);
  return ids;
}

Result<std::optional<CheckpointMetadata>> newest_checkpoint(FileSystem& file_system,
                                                            const std::string& data_dir) {
  ATOLL_ASSIGN(const auto ids, installed_checkpoints(file_system, data_dir));
  if (ids.empty()) return std::nullopt;
  ATOLL_ASSIGN(auto metadata, read_checkpoint_metadata(file_system, data_dir, ids.back()));
  return metadata;
}

Result<uint64_t> delete_other_checkpoints(FileSystem& file_system, const std::string& data_dir,
                                          const std::vector<std::string>& directories,
                                          uint64_t kept) {
  const std::string coordinator = coordinator_directory(data_dir);
  ATOLL_ASSIGN(const auto ids, installed_checkpoints(file_system, data_dir));
  CHECK(std::ranges::binary_search(ids, kept));
  uint64_t deleted = 0;
  for (const uint64_t id : ids) {
    if (id == kept) continue;
    ATOLL_TRY(file_system.remove(checkpoint_metadata_path(data_dir, id)));
    ++deleted;
  }
  // The names are gone durably before the first file, so no metadata names a deleted file.
  if (deleted != 0) {
    ATOLL_TRY(file_system.sync_directory(coordinator));
  }
  std::set<std::string> all(directories.begin(), directories.end());
  all.insert(data_dir);
  for (const std::string& directory : all) {
    const auto clean = [&](uint32_t, const std::string& folder) -> Result<void> {
      ATOLL_ASSIGN(const uint64_t count, delete_in_folder(file_system, folder, kept));
      deleted += count;
      return {};
    };
    ATOLL_TRY(for_each_node_folder(file_system, directory, clean));
  }
  return deleted;
}

}  // namespace atolldb
