#include "ops/export/snapshot_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/log/ddl_log.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "ops/verify/snapshot_split.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// The snapshot that is exported.
struct OpenSnapshot {
  SnapshotMetadata metadata;
  std::vector<DdlRecord> ddl;
  SnapshotFiles files;
};

Result<std::unique_ptr<OpenSnapshot>> open_snapshot(FileSystem& file_system,
                                                    const std::string& data_dir,
                                                    const ExportManifest& manifest) {
  CHECK(manifest.snapshot != 0);
  ATOLL_ASSIGN(auto metadata, read_snapshot_metadata(file_system, data_dir, manifest.snapshot));
  if (metadata.cluster_uuid != manifest.cluster_uuid || metadata.epoch != manifest.epoch) {
    return make_error(ExitCode::identity,
                      fmt::format("export: snapshot {} of {} is not the one that this export has "
                                  "begun with: choose the cluster that it began with",
                                  manifest.snapshot, data_dir));
  }
  ATOLL_ASSIGN(auto ddl, read_ddl_log(file_system, data_dir, manifest.cluster_uuid));
  auto snapshot = std::unique_ptr<OpenSnapshot>(
      new OpenSnapshot{std::move(metadata), std::move(ddl.records),
                       SnapshotFiles(file_system, manifest.cluster_uuid)});
  ATOLL_TRY(snapshot->files.open(snapshot->metadata.files));
  return snapshot;
}

/// Returns the creation of the storage that has this name in the snapshot, or nothing. A snapshot
/// need not list a storage without records, and may list one before the epoch of its creation.
std::optional<DdlRecord> definition_of(const OpenSnapshot& snapshot, const std::string& name) {
  const uint64_t epoch = snapshot.metadata.epoch;
  std::optional<DdlRecord> found;
  for (const DdlRecord& record : snapshot.ddl) {
    const auto& listed = snapshot.metadata.storages;
    const bool is_listed =
        std::ranges::find(listed, record.storage_id, &SnapshotStorage::id) != listed.end();
    const bool is_creation = record.operation == DdlOperation::create_storage;
    if (is_creation && record.name == name && (is_listed || record.epoch <= epoch)) found = record;
    const bool is_own_drop = !is_creation && found && found->storage_id == record.storage_id;
    if (is_own_drop && !is_listed && record.epoch <= epoch) found.reset();
  }
  return found;
}

/// Returns the storage of the table in the snapshot. Without a root it is empty.
Result<SnapshotWalkStorage> storage_of(const OpenSnapshot& snapshot, const TableSchema& table) {
  const auto created = definition_of(snapshot, table.storage);
  if (!created) {
    return unfit_table(table, fmt::format("snapshot {} of epoch {} has no such storage: correct "
                                          "the schema, or choose tables with --table",
                                          snapshot.metadata.id, snapshot.metadata.epoch));
  }
  ATOLL_TRY(check_table(
      table, {created->storage_id, created->type, created->payload_bytes, created->record_count}));
  SnapshotWalkStorage storage{created->storage_id, created->type,
                              static_cast<uint32_t>(created->payload_bytes), created->record_count,
                              SnapshotPointer()};
  const auto& storages = snapshot.metadata.storages;
  const auto found = std::ranges::find(storages, storage.id, &SnapshotStorage::id);
  if (found != storages.end()) storage.root = found->root;
  return storage;
}

class SnapshotSource final : public ExportSource {
 public:
  explicit SnapshotSource(std::unique_ptr<OpenSnapshot> snapshot)
      : snapshot_(std::move(snapshot)) {}

  Result<std::vector<WalkRange>> split(const TableSchema& table, uint32_t count) const override {
    ATOLL_ASSIGN(const SnapshotWalkStorage storage, storage_of(*snapshot_, table));
    return split_storage(snapshot_->files, storage, count);
  }
  Result<void> walk(const TableSchema& table, const WalkRange& range,
                    const RecordVisitor& visit) const override {
    ATOLL_ASSIGN(const SnapshotWalkStorage storage, storage_of(*snapshot_, table));
    ATOLL_TRY(
        walk_snapshot(snapshot_->files, storage, snapshot_->metadata.epoch, visit, {}, range));
    return {};
  }

 private:
  std::unique_ptr<OpenSnapshot> snapshot_;
};

}  // namespace

Result<std::unique_ptr<ExportSource>> open_snapshot_source(FileSystem& file_system,
                                                           const std::string& data_dir,
                                                           const ExportManifest& manifest) {
  ATOLL_ASSIGN(auto snapshot, open_snapshot(file_system, data_dir, manifest));
  return std::make_unique<SnapshotSource>(std::move(snapshot));
}

}  // namespace atolldb
