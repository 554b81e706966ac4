#include "engine/checkpoint/checkpoint_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "engine/format/byte_stream.h"
#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/log/metadata_file.h"
#include "engine/log/savepoint.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/take_text.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"

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

/// The number of records of a storage, as the file has it.
struct StoredRecords {
  uint32_t storage_id = 0;
  uint64_t records = 0;
  bool is_estimate = false;
};

template <typename Archive>
void fields(Archive& archive, Described<Archive, StoredRecords>& stored) {
  archive(stored.storage_id, stored.records, stored.is_estimate);
}

constexpr uint32_t kOldestMetadata = 1;
constexpr uint32_t kMetadataWithStoredRecords = 2;
constexpr MetadataFormat kCheckpointMetaFormat = {.magic = 0x4d434c41,  // "ALCM"
                                                  .version = kMetadataWithStoredRecords,
                                                  .oldest_version = kOldestMetadata,
                                                  .owner = "a checkpoint"};

/// Returns the numbers of records of the storages that have one.
std::vector<StoredRecords> stored_records_of(const CheckpointMetadata& metadata) {
  std::vector<StoredRecords> all;
  for (const CheckpointStorage& storage : metadata.storages) {
    if (storage.records) all.push_back({storage.id, *storage.records, storage.is_estimate});
  }
  return all;
}

/// Gives the storages their numbers of records. Returns whether each is of a listed storage, in
/// order. REQUIRES: the storages ascend by id.
bool take_stored_records(const std::vector<StoredRecords>& all, CheckpointMetadata& metadata) {
  if (std::ranges::adjacent_find(all, std::ranges::greater_equal(), &StoredRecords::storage_id) !=
      all.end()) {
    return false;
  }
  for (const StoredRecords& stored : all) {
    const auto found =
        std::ranges::lower_bound(metadata.storages, stored.storage_id, {}, &CheckpointStorage::id);
    if (found == metadata.storages.end() || found->id != stored.storage_id) return false;
    found->records = stored.records;
    found->is_estimate = stored.is_estimate;
  }
  return true;
}

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

/// Decodes the body of a file. Returns an empty text, or the reason why it is not metadata.
std::string decode(std::span<const std::byte> bytes, uint32_t version, const DirectoryTable& table,
                   CheckpointMetadata& metadata) {
  ByteReader body(bytes);
  body(metadata);
  std::vector<StoredRecords> stored;
  if (version >= kMetadataWithStoredRecords) body(stored);
  if (!body.is_at_end() || !is_plausible(metadata) || !take_stored_records(stored, metadata)) {
    return "its content is invalid";
  }
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

std::string metadata_name(uint64_t id) { return fmt::format("checkpoint_{}.meta", id); }

}  // namespace

std::string checkpoint_metadata_path(const std::string& data_dir, uint64_t id) {
  return path_in(coordinator_directory(data_dir), metadata_name(id));
}

std::optional<uint64_t> parse_checkpoint_metadata_name(std::string_view name) {
  std::string_view rest = name;
  uint64_t id = 0;
  if (!take_text(rest, "checkpoint_") || !take_number(rest, id) || id == 0) return std::nullopt;
  if (metadata_name(id) != name) return std::nullopt;
  return id;
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
  body(named, stored_records_of(metadata));
  CheckpointMetadata decoded;
  const auto decode_again = [&](std::span<const std::byte> bytes, uint32_t version,
                                const DirectoryTable& roles) {
    return decode(bytes, version, roles, decoded);
  };
  ATOLL_TRY(write_metadata_file(file_system, data_dir,
                                checkpoint_metadata_path(data_dir, metadata.id),
                                kCheckpointMetaFormat, body.bytes(), table, decode_again));
  CHECK(decoded.files.size() == metadata.files.size());
  CHECK(decoded.storages == metadata.storages);
  return {};
}

Result<CheckpointMetadata> read_checkpoint_metadata(FileSystem& file_system,
                                                    const std::string& data_dir, uint64_t id) {
  CheckpointMetadata metadata;
  const auto decode_and_compare = [&](std::span<const std::byte> bytes, uint32_t version,
                                      const DirectoryTable& table) {
    const std::string reason = decode(bytes, version, table, metadata);
    if (!reason.empty() || metadata.id == id) return reason;
    return fmt::format("it is of checkpoint {}", metadata.id);
  };
  ATOLL_TRY(read_metadata_file(file_system, data_dir, checkpoint_metadata_path(data_dir, id),
                               kCheckpointMetaFormat, decode_and_compare));
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
    if (const auto id = parse_checkpoint_metadata_name(name)) ids.push_back(*id);
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

}  // namespace atolldb
