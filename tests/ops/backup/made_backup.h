// A cluster's data in memory, with backups of it and oracles of its state.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/log/log_scan.h"
#include "engine/recovery/log_start.h"
#include "ops/backup/backup_folder.h"
#include "ops/backup/restore_backup.h"
#include "ops/backup/take_backup.h"
#include "ops/launcher/owner_file.h"
#include "shared/file/directory_table.h"
#include "tests/engine/log/written_log.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::test {

inline constexpr const char* kBackups = "/backups";
inline constexpr const char* kFirstBackup = "20261123T040506Z";
inline constexpr const char* kSecondBackup = "20261124T040506Z";

inline Result<DirectoryLocation> locate_in_memory(const std::string& directory) {
  return DirectoryLocation{directory, "", 0, "machine", ""};
}

/// VID, storage and length of a log record. A logger of the tests writes no two equal records, but
/// two loggers may write equal ones.
using CountedRecord = std::tuple<uint64_t, uint32_t, uint32_t>;
using CountedRecords = std::multiset<CountedRecord>;

/// Adds the records of a stream whose epochs are in (after, cut].
inline void add_counted(FileSystem& files, LogStream stream, uint64_t after, uint64_t cut,
                        CountedRecords& records) {
  stream.covered_epoch = after;
  const auto scan = scan_log(files, stream, [&](const LogBlock& block, const auto&, uint64_t) {
    const uint64_t epoch = block.header.epoch;
    if (block.header.type != LogBlockType::records || epoch <= after || epoch > cut) return;
    for_each_record(block, [&](const LogRecord& record) {
      if (record.type == LogType::filler) return;
      records.insert({record.vid, record.storage_id, record.length});
    });
  });
  EXPECT_TRUE(scan) << scan.error().message;
}

/// Returns all records of the listed incarnations whose epochs are in (after, cut].
inline CountedRecords records_of(FileSystem& files, const Savepoint& savepoint, uint64_t after,
                                 uint64_t cut) {
  CountedRecords records;
  for (const Incarnation& incarnation : savepoint.incarnations) {
    for (const LoggerPlace& place : incarnation.loggers) {
      add_counted(files, stream_of(savepoint, incarnation, place), after, cut, records);
    }
  }
  return records;
}

/// Returns the records that the recovery of a start-up would process.
inline CountedRecords gleaned_by(FileSystem& files, const LogStart& start) {
  CountedRecords records;
  for (const PlannedStream& stream : start.streams_to_read) {
    add_counted(files, stream.stream, start.savepoint.snapshot_epoch, stream.last_epoch, records);
  }
  return records;
}

/// Returns the names of the storages that exist after the records.
inline std::set<std::string> storages_after(const std::vector<DdlRecord>& records,
                                            uint64_t epoch = UINT64_MAX) {
  std::map<uint32_t, std::string> living;
  for (const DdlRecord& record : records) {
    if (record.epoch > epoch) continue;
    if (record.operation == DdlOperation::create_storage) {
      living[record.storage_id] = record.name;
    } else {
      living.erase(record.storage_id);
    }
  }
  std::set<std::string> names;
  for (const auto& [id, name] : living) names.insert(name);
  return names;
}

/// Epochs 1 to 9 in the logs of two nodes. Snapshot 1 of epoch 3 is kept, snapshot 2 of epoch 5 is
/// the newest. A storage is created in epoch 6, another is dropped in epoch 7.
class BackedUpData {
 public:
  BackedUpData() {
    EXPECT_EQ(data.begin({kFirst, kSecond}), "");
    data.write_all(1, 9);
    EXPECT_EQ(make_snapshot(files(), "/data", savepoint(), 3, {}, 2), "");
    EXPECT_EQ(make_snapshot(files(), "/data", savepoint(), 5, {}, 2), "");
    for (const uint32_t snapshot : {1u, 2u}) change_storages(snapshot, add_all);
    auto ddl = DdlLog::open(files(), "/data", savepoint().cluster_uuid);
    EXPECT_TRUE(ddl);
    EXPECT_TRUE(
        ddl->append({DdlOperation::create_storage, 10, 6, "late", StorageType::mastertree, 8, 0}));
    EXPECT_TRUE(ddl->append({DdlOperation::drop_storage, 2, 7, "s2", StorageType::none, 0, 0}));
    EXPECT_TRUE(write_owner(files(), "/data",
                            {"owner of the original", true, "bank", "/data", std::string(kDataRole),
                             *locate_in_memory("/data")}));
    EXPECT_TRUE(files().make_directory(kBackups));
  }

  MemoryFileSystem& files() { return data.files; }
  Savepoint& savepoint() { return data.start.savepoint; }

  using Storages = std::vector<SnapshotStorage>;
  /// Changes the storages that the metadata of a snapshot lists.
  void change_storages(uint32_t snapshot, const std::function<void(Storages&)>& change) {
    auto metadata = read_snapshot_metadata(files(), "/data", snapshot);
    ASSERT_TRUE(metadata) << metadata.error().message;
    change(metadata->storages);
    ASSERT_TRUE(write_snapshot_metadata(files(), "/data", *metadata));
  }
  /// Adds the storages that the DDL log creates in epoch 1.
  static void add_all(Storages& storages) {
    for (auto id = static_cast<uint32_t>(storages.size()) + 1; id <= kStorages; ++id) {
      storages.push_back({id, StorageType::mastertree, "s" + std::to_string(id), {}, 0});
    }
  }

  /// Returns the request for a backup of a stopped cluster. Tests of running ones set
  /// `durable_epoch`.
  BackupRequest request(const std::string& id) {
    BackupRequest request;
    request.data_dir = "/data";
    request.directory = kBackups;
    request.id = id;
    request.cluster = "bank";
    request.newest = savepoint().snapshot;
    request.older = savepoint().kept.empty() ? 0 : savepoint().kept.front().id;
    return request;
  }
  BackupManifest back_up(const std::string& id = kFirstBackup,
                         std::optional<BackupManifest> previous = {}) {
    BackupRequest wanted = request(id);
    wanted.previous = std::move(previous);
    auto taken = take_backup(files(), wanted);
    EXPECT_TRUE(taken) << taken.error().message;
    return taken ? *taken : BackupManifest{};
  }

  DataDirectory data;
};

inline RestoreRequest restore_request(const BackupManifest& manifest, uint64_t epoch,
                                      const std::string& to) {
  RestoreRequest request;
  request.folder = backup_path(kBackups, manifest.id);
  request.to = to;
  request.manifest = manifest;
  request.epoch = epoch;
  request.locate = locate_in_memory;
  return request;
}

inline Result<Restored> restore(FileSystem& files, const BackupManifest& manifest, uint64_t epoch,
                                const std::string& to) {
  if (auto made = files.make_directory(to); !made) return std::unexpected(made.error());
  return restore_backup(files, restore_request(manifest, epoch, to));
}

}  // namespace atolldb::test
