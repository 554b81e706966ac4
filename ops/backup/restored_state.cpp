#include "ops/backup/restored_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/launcher/owner_file.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Makes the newest snapshot that is not after `epoch` the only one.
void choose_snapshot(Savepoint& savepoint, uint64_t epoch) {
  CHECK(epoch >= savepoint.oldest_epoch());
  while (savepoint.snapshot != 0 && savepoint.snapshot_epoch > epoch) {
    CHECK(!savepoint.kept.empty());
    savepoint.snapshot = savepoint.kept.back().id;
    savepoint.snapshot_epoch = savepoint.kept.back().epoch;
    savepoint.kept.pop_back();
  }
  savepoint.kept.clear();
}

/// Returns whether the base lacks a storage that was created in its epoch or before.
bool lacks_storage(const RestoreBase& base, const std::vector<DdlRecord>& records, uint32_t id) {
  const auto creates = [&](const DdlRecord& record) {
    return record.operation == DdlOperation::create_storage && record.storage_id == id &&
           record.epoch <= base.epoch;
  };
  return std::ranges::any_of(records, creates) && !base.storages.contains(id);
}

}  // namespace

Result<Savepoint> savepoint_of_backup(FileSystem& file_system, const std::string& folder) {
  ATOLL_ASSIGN(auto read, read_savepoint(file_system, folder));
  const bool is_complete = read && read->damaged_slot.empty() &&
                           read->savepoint.uncut() == nullptr && read->savepoint.pinned.empty();
  if (is_complete) return std::move(read->savepoint);
  return make_error(ExitCode::corruption,
                    fmt::format("{}: is not the savepoint of a backup: the backup is damaged: use "
                                "another one",
                                savepoint_path(folder)));
}

Savepoint savepoint_at(const Savepoint& backup, uint64_t epoch, const std::string& data_dir) {
  CHECK(backup.uncut() == nullptr && backup.pinned.empty());
  Savepoint restored = backup;
  choose_snapshot(restored, epoch);
  restored.generation = 0;
  restored.durable_epoch = 0;
  restored.largest_incarnation = distant_incarnation(backup.largest_incarnation);
  restored.incarnations.clear();
  for (Incarnation incarnation : backup.incarnations) {
    if (incarnation.start_epoch > epoch) break;  // later ones begin even later
    const uint64_t cut = std::min(*incarnation.cut_epoch, epoch);
    if (cut <= restored.snapshot_epoch && restored.incarnations.empty()) {
      restored.covered_incarnation = incarnation.number;
      continue;
    }
    incarnation.cut_epoch = cut;
    for (LoggerPlace& place : incarnation.loggers) place.directory = data_dir;
    restored.incarnations.push_back(std::move(incarnation));
  }
  CHECK(restored.snapshot_epoch <= epoch && restored.uncut() == nullptr);
  CHECK(restored.largest_epoch >= epoch);
  return restored;
}

std::vector<DdlRecord> ddl_at(const std::vector<DdlRecord>& records, uint64_t epoch,
                              const RestoreBase* base) {
  CHECK(base == nullptr || base->epoch <= epoch);
  std::vector<DdlRecord> restored;
  for (const DdlRecord& record : records) {
    if (record.epoch <= epoch) {
      restored.push_back(record);
      continue;
    }
    if (record.operation != DdlOperation::create_storage) {
      const bool is_lacking = base != nullptr && lacks_storage(*base, records, record.storage_id);
      if (is_lacking) restored.push_back(record);
      continue;
    }
    restored.push_back(record);
    DdlRecord drop;
    drop.operation = DdlOperation::drop_storage;
    drop.storage_id = record.storage_id;
    drop.epoch = record.epoch;
    drop.name = record.name;
    restored.push_back(std::move(drop));
  }
  return restored;
}

}  // namespace atolldb
