// The manifest of a backup: DIR/<id>/manifest.json. It is written last, so a folder without one is
// an incomplete backup.
//
//   {"format": "atoll-backup", "version": 1, "crc32c": "<8 digits>", "backup": {...}}
//
// crc32c: CRC32C of the member `backup` as compact JSON with sorted members. The file itself is
// indented JSON, and line feeds pad it to a multiple of kIoBlockBytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/format/log_block.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

inline constexpr uint32_t kBackupVersion = 1;

enum class BackupFileKind : uint8_t {
  savepoint,
  ddl_log,
  epoch_times,
  snapshot_metadata,
  snapshot_pages,
  log,
  checkpoint_metadata,
  checkpoint_records,
};

struct BackupFile {
  std::string path;  // relative to the folder of the backup: "node0/log_3_0_000001.atlog"
  BackupFileKind kind = BackupFileKind::log;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  /// True: the cluster no longer changes the file of this name, so the next backup may link it.
  bool is_final = false;

  bool operator==(const BackupFile&) const = default;
};

/// A snapshot, or a checkpoint. The epoch of a checkpoint is the one before its replay epoch.
struct BackupSnapshot {
  uint32_t id = 0;
  uint64_t epoch = 0;

  bool operator==(const BackupSnapshot&) const = default;
};

struct BackupManifest {
  std::string id;
  std::string cluster;  // name of the cluster
  std::string data_id;  // id in the owner file of the cluster's data_dir
  ClusterUuid cluster_uuid = {};
  uint64_t incarnation = 0;  // number of the last incarnation in the backup
  /// Each state at the end of an epoch in [oldest_epoch, durable_epoch] can be restored.
  uint64_t oldest_epoch = 0;
  uint64_t durable_epoch = 0;
  uint64_t started_ms = 0;  // every commit acknowledged before this time is in the backup
  uint64_t finished_ms = 0;
  uint64_t linked_bytes = 0;              // of files that are links, not copies
  std::vector<BackupSnapshot> snapshots;  // ascending; the last one is the newest
  std::vector<BackupFile> files;          // sorted by path

  bool operator==(const BackupManifest&) const = default;
  uint64_t bytes() const;
  /// Returns the entry of this path, or null.
  const BackupFile* find(const std::string& path) const;
  /// Returns whether both backups are of the same data directory. Only then do final files of equal
  /// name have equal content. A restored or adopted copy keeps the uuid but writes other content.
  bool is_of_same_data(const BackupManifest& other) const {
    return data_id == other.data_id && cluster_uuid == other.cluster_uuid;
  }
};

/// <folder>/manifest.json
std::string manifest_path(const std::string& folder);

/// Writes the manifest durably. Returns code resources if it is larger than kMaxTextFileBytes.
Result<void> write_manifest(FileSystem& file_system, const std::string& folder,
                            const BackupManifest& manifest);

/// Returns nothing if there is no manifest; the backup is then incomplete. Returns code corruption
/// if the manifest is damaged.
Result<std::optional<BackupManifest>> read_manifest(FileSystem& file_system,
                                                    const std::string& folder);

std::string_view to_string(BackupFileKind kind);

}  // namespace atolldb
