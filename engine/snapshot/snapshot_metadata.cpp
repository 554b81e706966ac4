#include "engine/snapshot/snapshot_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "engine/format/byte_stream.h"
#include "engine/format/crc32c.h"
#include "engine/format/stand_in.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

template <typename Archive>
void fields(Archive& archive, Described<Archive, SnapshotStorage>& storage) {
  archive(storage.id);
  archive.enumerator(storage.type, StorageType::none, kLastStorageType);
  archive(storage.name, storage.root, storage.records);
}

template <typename Archive>
void fields(Archive& archive, Described<Archive, SnapshotMetadata>& metadata) {
  archive(metadata.id, metadata.base, metadata.epoch, metadata.base_epoch, metadata.cluster_uuid,
          metadata.storages, metadata.files);
}

namespace {

constexpr uint32_t kMetadataMagic = 0x4d534c41;  // "ALSM"
constexpr uint32_t kMetadataVersion = 3;
constexpr uint32_t kMetadataOfPaths = 1;  // names directories by their paths instead of their roles
constexpr uint32_t kMetadataWithCounts = 3;  // the first version with the counts of live pages

/// Header of the file. The body follows, then zeros up to a multiple of kIoBlockBytes.
struct FileHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of the bytes after this field, up to the end of the file
  uint32_t version;
  uint32_t spare;
  uint64_t length;  // bytes of the body
};
static_assert(sizeof(FileHeader) == 24);
constexpr size_t kMetadataChecked = offsetof(FileHeader, version);

/// Encodes metadata. Gives roles to directories that have none.
ByteWriter encode(SnapshotMetadata metadata, DirectoryTable& table) {
  CHECK(std::ranges::all_of(metadata.storages, [](const SnapshotStorage& storage) {
    return storage.name.size() <= kMaxStorageName;
  }));
  for (SnapshotFilePlace& file : metadata.files) {
    CHECK(file.directory.size() <= kMaxLogPathBytes);
    file.directory = table.add(file.directory);
  }
  ByteWriter body;
  body(metadata, metadata.live, metadata.uncounted);
  return body;
}

bool is_listed(const SnapshotMetadata& metadata, SnapshotPointer pointer) {
  const SnapshotPointer page = unmarked(pointer);  // a root may be a stand-in (R56)
  return std::ranges::any_of(metadata.files, [&](const SnapshotFilePlace& file) {
    return file.snapshot == page.snapshot() && file.node == page.node() &&
           page.page() < file.page_count;
  });
}

template <typename Values, typename Key>
bool ascends(const Values& values, Key key) {
  return std::ranges::adjacent_find(values, std::ranges::greater_equal(), key) == values.end();
}

/// Checks that the counts of live pages belong to listed storages and files.
bool are_counts_sensible(const SnapshotMetadata& metadata) {
  const std::vector<uint32_t> snapshots = snapshots_of(metadata.files);
  std::set<std::pair<uint32_t, uint32_t>> files;  // (snapshot, node) of each listed file
  for (const SnapshotFilePlace& file : metadata.files) files.emplace(file.snapshot, file.node);
  return ascends(metadata.uncounted, std::identity()) && ascends(metadata.live, live_order) &&
         std::ranges::includes(snapshots, metadata.uncounted) &&
         std::ranges::all_of(metadata.live, [&](const LivePages& live) {
           return live.all() != 0 && live.first_layer <= kStandInBit &&
                  live.next_layers <= kStandInBit && files.contains({live.snapshot, live.node}) &&
                  std::ranges::binary_search(metadata.storages, live.storage_id, {},
                                             &SnapshotStorage::id) &&
                  !std::ranges::binary_search(metadata.uncounted, live.snapshot);
         });
}

/// Checks what every snapshot job guarantees: ids and epochs are in order, every root lies in a
/// listed file, and page numbers leave room for kStandInBit.
bool is_sensible(const SnapshotMetadata& metadata) {
  if (metadata.id == 0 || metadata.id > SnapshotPointer::kMaxSnapshot) return false;
  if (metadata.base >= metadata.id || metadata.epoch > kMaxEpoch) return false;
  if (metadata.base_epoch > metadata.epoch) return false;
  uint32_t before = 0;
  for (const SnapshotStorage& storage : metadata.storages) {
    if (&storage != &metadata.storages.front() && storage.id <= before) return false;
    if (storage.type == StorageType::none || storage.type > kLastStorageType) return false;
    if (!storage.root.is_null() && !is_listed(metadata, storage.root)) return false;
    before = storage.id;
  }
  return are_counts_sensible(metadata) &&
         std::ranges::all_of(metadata.files, [&](const SnapshotFilePlace& file) {
           return file.snapshot != 0 && file.snapshot <= metadata.id && file.node <= kCoordinator &&
                  file.page_count <= kStandInBit;
         });
}

/// Decodes the body. Returns an empty text, or the reason why it is invalid.
std::string decode(std::span<const std::byte> bytes, uint32_t version, const DirectoryTable& table,
                   SnapshotMetadata& metadata) {
  ByteReader body(bytes);
  body(metadata);
  if (version >= kMetadataWithCounts) {
    body(metadata.live, metadata.uncounted);
  } else {
    metadata.uncounted = snapshots_of(metadata.files);
  }
  if (!body.is_at_end()) return "its content is invalid";
  for (SnapshotFilePlace& file : metadata.files) {
    if (version == kMetadataOfPaths) break;
    auto path = table.path_of(file.directory);
    if (!path) {
      return fmt::format("it names directory {}, which the file `directories` does not list",
                         file.directory);
    }
    file.directory = *std::move(path);
  }
  return is_sensible(metadata) ? "" : "its content is invalid";
}

/// Decodes a file. Returns an empty text, or the reason why it is not metadata.
std::string decode_file(std::span<const std::byte> bytes, const DirectoryTable& table,
                        SnapshotMetadata& metadata) {
  FileHeader header = {};
  if (bytes.size() < sizeof header) return "it ends within its header";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMetadataMagic) {
    return fmt::format("its magic number is 0x{:08x}, not 0x{:08x}", header.magic, kMetadataMagic);
  }
  if (header.crc != crc32c(bytes.subspan(kMetadataChecked))) return "its checksum is wrong";
  if (header.version > kMetadataVersion || header.version < kMetadataOfPaths) {
    return fmt::format("its format has version {}, this program reads up to {}", header.version,
                       kMetadataVersion);
  }
  if (header.length > bytes.size() - sizeof header) return "its length is beyond its end";
  return decode(bytes.subspan(sizeof header, header.length), header.version, table, metadata);
}

std::unexpected<Error> damaged_metadata(const std::string& path, const std::string& reason) {
  return make_error(ExitCode::corruption,
                    path + ": metadata of a snapshot: " + reason +
                        ": restore a backup, or start empty with `atoll up --discard-data`");
}

/// Creates a file with these bytes and syncs it.
Result<void> write_file(FileSystem& file_system, const std::string& path,
                        std::span<const std::byte> bytes) {
  CHECK(bytes.size() % kIoBlockBytes == 0);
  // Removes a file that a crash during an earlier call has left.
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

std::vector<uint32_t> snapshots_of(const std::vector<SnapshotFilePlace>& files) {
  std::vector<uint32_t> ids;
  for (const SnapshotFilePlace& file : files) ids.push_back(file.snapshot);
  std::ranges::sort(ids);
  const auto same = std::ranges::unique(ids);
  ids.erase(same.begin(), same.end());
  return ids;
}

std::string snapshot_metadata_path(const std::string& data_dir, uint32_t id) {
  return path_in(coordinator_directory(data_dir), fmt::format("snapshot_{}.meta", id));
}

Result<void> write_snapshot_metadata(FileSystem& file_system, const std::string& data_dir,
                                     const SnapshotMetadata& metadata) {
  CHECK(is_sensible(metadata));
  ATOLL_ASSIGN(DirectoryTable table, DirectoryTable::read(file_system, data_dir));
  const ByteWriter body = encode(metadata, table);
  FileHeader header = {kMetadataMagic, 0, kMetadataVersion, 0, body.bytes().size()};
  IoBuffer buffer(sizeof header + body.bytes().size());
  const std::span<std::byte> bytes = buffer.bytes();
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(body.bytes(), bytes.begin() + sizeof header);
  header.crc = crc32c(bytes.subspan(kMetadataChecked));
  std::memcpy(bytes.data(), &header, sizeof header);
  SnapshotMetadata decoded;
  CHECK(decode_file(bytes, table, decoded).empty());
  CHECK(decoded.id == metadata.id && decoded.storages == metadata.storages);
  CHECK(decoded.live == metadata.live && decoded.uncounted == metadata.uncounted);

  const std::string directory = coordinator_directory(data_dir);
  const std::string path = snapshot_metadata_path(data_dir, metadata.id);
  ATOLL_TRY(file_system.make_directory(directory));
  // The table is durable before the file that names its roles.
  ATOLL_TRY(table.write(file_system));
  ATOLL_TRY(write_file(file_system, path + ".new", bytes));
  ATOLL_TRY(file_system.rename(path + ".new", path));
  return file_system.sync_directory(directory);
}

Result<SnapshotMetadata> read_snapshot_metadata(FileSystem& file_system,
                                                const std::string& data_dir, uint32_t id) {
  const std::string path = snapshot_metadata_path(data_dir, id);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return damaged_metadata(path, "the file is missing");
  ATOLL_ASSIGN(const auto file, file_system.open_for_reading(path));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  IoBuffer buffer(size);
  ATOLL_ASSIGN(const uint64_t count, file->read(0, buffer.bytes()));
  // The table is read after the file, so that it has every role that the file names.
  ATOLL_ASSIGN(auto table, DirectoryTable::read(file_system, data_dir));
  SnapshotMetadata metadata;
  const std::string reason = decode_file(buffer.bytes().first(count), table, metadata);
  if (!reason.empty()) return damaged_metadata(path, reason);
  if (metadata.id != id)
    return damaged_metadata(path, fmt::format("it is of snapshot {}", metadata.id));
  return metadata;
}

}  // namespace atolldb
