#include "bench/gleaner_driver/log_to_glean.h"

#include <algorithm>
#include <map>
#include <utility>

#include "bench/gleaner_driver/options.h"
#include "shared/base/try.h"

namespace atolldb::gleaner_bench {
namespace {

/// Returns the storages that the DDL records create and do not drop.
std::vector<PlannedStorage> storages_of(const std::vector<DdlRecord>& records) {
  std::map<uint32_t, PlannedStorage> storages;
  for (const DdlRecord& record : records) {
    if (record.operation == DdlOperation::drop_storage) {
      storages.erase(record.storage_id);
      continue;
    }
    PlannedStorage& storage = storages[record.storage_id];
    storage.id = record.storage_id;
    storage.type = record.type;
    storage.payload_bytes = static_cast<uint32_t>(record.payload_bytes);
    storage.record_count = record.record_count;
    if (record.type != StorageType::sequential) storage.partitions = {{"", ReducerPlace{}}};
  }
  std::vector<PlannedStorage> list;
  for (auto& [id, storage] : storages) list.push_back(std::move(storage));
  return list;
}

Base base_of(const SnapshotMetadata& snapshot, const std::vector<PlannedStorage>& storages) {
  Base base{snapshot.id, snapshot.epoch, {}, snapshot.files};
  for (const PlannedStorage& storage : storages) {
    const auto stored = std::ranges::find(snapshot.storages, storage.id, &SnapshotStorage::id);
    base.roots.push_back(stored == snapshot.storages.end() ? SnapshotPointer() : stored->root);
  }
  return base;
}

}  // namespace

uint64_t Base::bytes() const {
  uint64_t pages = 0;
  for (const SnapshotFilePlace& file : files) pages += file.page_count;
  return pages * kPageBytes;
}

SnapshotPlan LogToGlean::plan(uint32_t id, uint64_t up_to_epoch, const Base& from) const {
  SnapshotPlan plan;
  plan.snapshot = id;
  plan.base = from.id;
  plan.base_epoch = from.epoch;
  plan.epoch = up_to_epoch;
  plan.cluster_uuid = cluster_uuid;
  plan.storages = storages;
  for (size_t i = 0; i < from.roots.size(); ++i) plan.storages[i].base_root = from.roots[i];
  PlannedMapper mapper;
  mapper.streams = streams;
  for (PlannedStream& stream : mapper.streams) {
    stream.last_epoch = std::min(stream.last_epoch, up_to_epoch);
    stream.stream.covered_epoch = from.epoch;
  }
  plan.mappers = {std::move(mapper)};
  plan.reducers = {ReducerPlace{}};
  plan.files = from.files;
  return plan;
}

Result<LogToGlean> find_log(FileSystem& file_system, const std::string& data_dir) {
  ATOLL_ASSIGN(auto start, examine(file_system, data_dir));
  if (start.streams_to_read.empty()) {
    return make_error(ExitCode::failed, std::string(kCommand) + ": " + data_dir +
                                            ": no log after its newest snapshot: give the data "
                                            "directory of a cluster that has committed since, or "
                                            "leave out --data-dir");
  }
  LogToGlean log;
  log.cluster_uuid = start.savepoint.cluster_uuid;
  log.storages = storages_of(start.ddl);
  log.streams = start.streams_to_read;
  log.epoch = start.recovery_epoch;
  if (start.snapshot) log.base = base_of(*start.snapshot, log.storages);
  return log;
}

}  // namespace atolldb::gleaner_bench
