// Metadata of a checkpoint: data_dir/coordinator/checkpoint_<id>.meta. A checkpoint exists once
// this file has its name, because the file is written last (R91). It names directories by their
// roles (R48), which data_dir/directories resolves. Version 1 lacks the numbers of records by
// storage. It is still read, but no longer written. Source: [SILOR14] section 4.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint_file.h"
#include "shared/base/error.h"
#include "shared/file/file.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// One file of a checkpoint.
struct CheckpointFileInfo {
  std::string directory;  // the file is in its subfolder node<k>/
  uint16_t node = 0;
  uint16_t writer = 0;
  uint32_t number = 0;
  uint64_t bytes = 0;  // up to the end of the last block; the file may be longer
  uint64_t records = 0;
  uint32_t checksum = 0;  // CRC32C of the checksums of all blocks, in file order

  bool operator==(const CheckpointFileInfo&) const = default;
};

/// A storage that existed when the checkpoint began.
struct CheckpointStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  std::string name;
  /// Records of the storage in all files. No value: version 1 of the metadata.
  std::optional<uint64_t> records = {};
  /// Whether `records` may differ from the number of records at each instant of the copy.
  bool is_estimate = false;

  bool operator==(const CheckpointStorage&) const = default;
};

struct CheckpointMetadata {
  uint64_t id = 0;
  /// Recovery replays the log from this epoch on (R88).
  uint64_t replay_epoch = 0;
  /// No record of the checkpoint is newer than this epoch (R89).
  uint64_t end_epoch = 0;
  ClusterUuid cluster_uuid = {};
  std::vector<CheckpointStorage> storages;  // ascending by id
  std::vector<CheckpointFileInfo> files;    // ascending by node, writer and number

  bool operator==(const CheckpointMetadata&) const = default;
};

/// Returns data_dir/coordinator/checkpoint_<id>.meta.
std::string checkpoint_metadata_path(const std::string& data_dir, uint64_t id);
/// Returns the id in the name of a metadata file, or nothing for other names.
std::optional<uint64_t> parse_checkpoint_metadata_name(std::string_view name);

/// Returns whether the checkpoint may be installed or replayed, given the durable epoch, or the
/// cut: every commit that it may have seen a part of is durable as a whole (R89).
bool is_end_durable(const CheckpointMetadata& metadata, uint64_t durable_epoch);

/// Installs a checkpoint: writes its metadata durably. Replaces a leftover of the same name.
/// REQUIRES: all files are synced; is_end_durable (CHECK).
Result<void> install_checkpoint(FileSystem& file_system, const std::string& data_dir,
                                const CheckpointMetadata& metadata, uint64_t durable_epoch);

/// Reads metadata. Error: code corruption, with file and reason, if the file is missing or damaged.
Result<CheckpointMetadata> read_checkpoint_metadata(FileSystem& file_system,
                                                    const std::string& data_dir, uint64_t id);

/// Returns the ids of all installed checkpoints, ascending.
Result<std::vector<uint64_t>> installed_checkpoints(FileSystem& file_system,
                                                    const std::string& data_dir);

/// Returns the newest installed checkpoint, or nothing if there is none. Error: code corruption if
/// its metadata is damaged. The log before an older checkpoint may be deleted, so no older one
/// takes its place.
Result<std::optional<CheckpointMetadata>> newest_checkpoint(FileSystem& file_system,
                                                            const std::string& data_dir);

}  // namespace atolldb
