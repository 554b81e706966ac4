#include "engine/snapshot/snapshot_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "engine/format/byte_stream.h"
#include "engine/format/stand_in.h"
#include "engine/log/log_files.h"
#include "engine/log/metadata_file.h"
#include "engine/log/savepoint.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"

namespace atolldb {

template <typename Archive>
void fields(Archive& archive, Described<Archive, SnapshotStorage>& storage) {
  archive(storage.id);
  archive.enumerator(storage.type, StorageType::none, kLastStorageType);
  archive(storage.name, storage.root, storage.records);
}

template <typename Archive>
void fields(Archive& archive, Described<Archive, RecordCount>& count) {
  archive(count.storage_id, count.records, count.is_estimate);
}

template <typename Archive>
void fields(Archive& archive, Described<Archive, SnapshotMetadata>& metadata) {
  archive(metadata.id, metadata.base, metadata.epoch, metadata.base_epoch, metadata.cluster_uuid,
          metadata.storages, metadata.files);
}

namespace {

constexpr uint32_t kMetadataOfPaths = 1;  // names directories by their paths instead of their roles
constexpr uint32_t kMetadataWithCounts = 3;  // the first version with the counts of live pages
constexpr uint32_t kMetadataWithRecordCounts = 4;
constexpr MetadataFormat kSnapshotMetaFormat = {.magic = 0x4d534c41,  // "ALSM"
                                                .version = kMetadataWithRecordCounts,
                                                .oldest_version = kMetadataOfPaths,
                                                .owner = "a snapshot"};

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
  body(metadata, metadata.live, metadata.uncounted, metadata.record_counts);
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

/// Checks that the counts of records belong to listed Master-trees.
bool are_record_counts_sensible(const SnapshotMetadata& metadata) {
  return ascends(metadata.record_counts, &RecordCount::storage_id) &&
         std::ranges::all_of(metadata.record_counts, [&](const RecordCount& count) {
           const auto storage = std::ranges::lower_bound(metadata.storages, count.storage_id, {},
                                                         &SnapshotStorage::id);
           return storage != metadata.storages.end() && storage->id == count.storage_id &&
                  is_tree(storage->type);
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
  return are_counts_sensible(metadata) && are_record_counts_sensible(metadata) &&
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
  if (version >= kMetadataWithRecordCounts) body(metadata.record_counts);
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

DecodeMetadata decoder_of(SnapshotMetadata& metadata) {
  return
      [&metadata](std::span<const std::byte> body, uint32_t version, const DirectoryTable& table) {
        return decode(body, version, table, metadata);
      };
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
  SnapshotMetadata decoded;
  ATOLL_TRY(write_metadata_file(file_system, data_dir,
                                snapshot_metadata_path(data_dir, metadata.id), kSnapshotMetaFormat,
                                body.bytes(), table, decoder_of(decoded)));
  CHECK(decoded.id == metadata.id && decoded.storages == metadata.storages);
  CHECK(decoded.live == metadata.live && decoded.uncounted == metadata.uncounted);
  CHECK(decoded.record_counts == metadata.record_counts);
  return {};
}

Result<SnapshotMetadata> read_snapshot_metadata(FileSystem& file_system,
                                                const std::string& data_dir, uint32_t id) {
  SnapshotMetadata metadata;
  const auto decode = [&](std::span<const std::byte> body, uint32_t version,
                          const DirectoryTable& table) {
    const std::string reason = decoder_of(metadata)(body, version, table);
    if (!reason.empty() || metadata.id == id) return reason;
    return fmt::format("it is of snapshot {}", metadata.id);
  };
  ATOLL_TRY(read_metadata_file(file_system, data_dir, snapshot_metadata_path(data_dir, id),
                               kSnapshotMetaFormat, decode));
  return metadata;
}

}  // namespace atolldb
