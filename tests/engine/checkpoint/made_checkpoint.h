// Makes a checkpoint with a few records, complete in its files, metadata and savepoint.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/log/savepoint_snapshots.h"
#include "shared/base/try.h"

namespace atolldb::test {

inline constexpr uint32_t kMadeFiles = 2;
inline constexpr uint64_t kMadeRecords = 40;

/// Writes the files of a checkpoint of node `node`. All records are of storage 1. Returns the
/// metadata, which is not written yet.
inline Result<CheckpointMetadata> make_checkpoint_files(FileSystem& files,
                                                        const std::string& directory,
                                                        const ClusterUuid& uuid, uint64_t id,
                                                        uint64_t replay_epoch, uint64_t end_epoch,
                                                        uint16_t node = 0) {
  CheckpointWriterSettings settings;
  settings.directory = directory;
  settings.node = node;
  settings.files = kMadeFiles;
  settings.checkpoint = id;
  settings.replay_epoch = replay_epoch;
  settings.cluster_uuid = uuid;
  ATOLL_ASSIGN(CheckpointWriter writer, CheckpointWriter::create(files, settings));
  for (uint64_t i = 0; i < kMadeRecords; ++i) {
    const std::string key = "key" + std::to_string(i);
    constexpr uint32_t kPayload = 2000;  // so that both files get a block
    LogRecord& record =
        writer.begin_record(LogType::insert, 1, std::as_bytes(std::span(key)), kPayload);
    std::fill_n(record.payload(), kPayload, static_cast<std::byte>(i));
    writer.end_record(Vid::make(std::max<uint64_t>(replay_epoch, 2) - 1, i + 1), kPayload);
    ATOLL_TRY(writer.write_if_full());
  }
  CheckpointMetadata metadata;
  ATOLL_ASSIGN(metadata.files, writer.finish());
  metadata.id = id;
  metadata.replay_epoch = replay_epoch;
  metadata.end_epoch = end_epoch;
  metadata.cluster_uuid = uuid;
  metadata.storages = {{1, StorageType::mastertree, "s1"}};
  return metadata;
}

/// Performs all steps of a checkpoint, up to its entry in the savepoint. REQUIRES: the end epoch is
/// durable.
inline Result<void> take_made_checkpoint(FileSystem& files, const std::string& data_dir,
                                         Savepoint& savepoint, uint64_t replay_epoch,
                                         uint64_t end_epoch, const std::string& directory) {
  ATOLL_ASSIGN(const uint32_t id, take_snapshot_id(files, data_dir, savepoint));
  ATOLL_ASSIGN(const auto metadata, make_checkpoint_files(files, directory, savepoint.cluster_uuid,
                                                          id, replay_epoch, end_epoch));
  ATOLL_TRY(install_checkpoint(files, data_dir, metadata, end_epoch));
  return store_checkpoint(files, data_dir, savepoint, id, replay_epoch, end_epoch);
}

/// As take_made_checkpoint. Returns the error, or an empty text.
inline std::string make_checkpoint(FileSystem& files, const std::string& data_dir,
                                   Savepoint& savepoint, uint64_t replay_epoch,
                                   uint64_t end_epoch) {
  const auto taken =
      take_made_checkpoint(files, data_dir, savepoint, replay_epoch, end_epoch, data_dir);
  return taken ? "" : taken.error().message;
}

}  // namespace atolldb::test
