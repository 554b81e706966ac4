// The cluster that `atoll backup` copies, or `atoll export` if it has checkpoints. Pins make a
// running cluster keep what the command needs (R65). A stopped cluster keeps it because its data
// are locked. An export pins the checkpoint there, too, so that a later run can continue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/savepoint.h"
#include "ops/backup/backup_folder.h"
#include "ops/cli/wal_data.h"
#include "ops/launcher/data_lock.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/file/file.h"
#include "shared/message/control_message.h"

namespace atolldb::cli {

/// Returns the bytes that a command leaves free in `directory`, so that the loggers of the running
/// cluster find room (R54). 0: the cluster keeps its data on other devices.
uint64_t reserve_beside(const Config& live, const std::string& directory);

class BackupSource {
 public:
  /// Finds the cluster and makes sure that no other backup of it runs. Locks the data of a stopped
  /// one. REQUIRES: `file_system` outlives the object. Returns code recovering while the cluster
  /// starts, and code already_running if another backup of it runs.
  static Result<BackupSource> open(FileSystem& file_system, const ClusterChoice& choice,
                                   const DataOptions& options);
  BackupSource(BackupSource&& other) noexcept;
  BackupSource& operator=(BackupSource&&) = delete;
  /// Releases the pins and the locks.
  ~BackupSource();

  const std::string& data_dir() const { return data_dir_; }
  /// The name of the cluster, and the id of its data directory.
  const std::string& cluster() const { return cluster_; }
  const std::string& data_id() const { return data_id_; }
  bool is_live() const { return live_.has_value(); }

  /// Returns reserve_beside() of the running cluster, or 0 if the cluster is stopped.
  uint64_t reserve_for(const std::string& directory) const;

  /// Returns the name of the pin of the newest snapshot.
  static std::string pin_name(const std::string& backup_id);

  /// Removes the pins that killed backups and unfinished exports have left. Keeps those that this
  /// object has made or continued with. Returns the removed names.
  Result<std::vector<std::string>> remove_left_pins();
  /// Removes the pin that an earlier run with this id has left, if there is one.
  Result<void> remove_left_pin(const std::string& backup_id);
  /// Chooses the snapshots for this backup, and pins them in a running cluster. If a running
  /// cluster has no snapshot yet, it takes one first.
  Result<void> choose_snapshots(const std::string& backup_id);
  /// Chooses the checkpoint for this export, and pins it. A stopped cluster may have none. If a
  /// running cluster has none yet, it takes one first.
  Result<void> choose_checkpoint(const std::string& export_id);
  /// Continues with the snapshot that an earlier run with this id has chosen. Pins it again if the
  /// pin is gone. `epoch`: was durable in that run. Error: code failed if the cluster may have
  /// deleted the snapshot or the log after it. Then release() removes the pin, if there is one.
  Result<void> continue_with(const std::string& backup_id, uint32_t snapshot, uint64_t epoch);
  bool has_pins() const { return !pins_.empty(); }
  /// The pins stay after the end of this object, so that a later run can continue.
  void keep_pins() { pins_.clear(); }
  /// The newest snapshot, and the oldest kept one. 0: none.
  uint32_t newest() const { return newest_; }
  uint32_t older() const { return older_; }
  /// The epoch that a running cluster had made durable when the snapshots were pinned. No value:
  /// the cluster is stopped.
  std::optional<uint64_t> durable_epoch() const { return durable_epoch_; }

  /// Removes the pins, also if the cluster has ended or restarted meanwhile. Returns an error that
  /// names the pins that stay.
  Result<void> release();

 private:
  BackupSource(FileSystem& file_system, ClusterChoice choice)
      : files_(&file_system), choice_(std::move(choice)) {}

  Result<Json> call(ControlOperation operation, const Json& body) const;
  Result<uint32_t> pin(uint32_t snapshot, const std::string& name);
  Result<uint32_t> pin_dead(uint32_t snapshot, const std::string& name) const;
  Result<void> unpin(const std::string& name) const;
  bool is_unpinned(const std::string& name) const;
  Result<void> unpin_once(const std::string& name) const;
  Result<void> unpin_dead(const std::string& name) const;
  Result<Savepoint> savepoint() const;

  FileSystem* files_;
  ClusterChoice choice_;
  std::string data_dir_;
  std::vector<std::string> directories_;  // directories of the cluster besides data_dir
  std::string cluster_;
  std::string data_id_;
  std::optional<Config> live_;      // no value: the cluster is stopped
  std::optional<DataLock> locks_;   // locks of the data of a stopped cluster
  std::optional<FolderLock> lock_;  // data_dir/backup.lock
  std::vector<std::string> pins_;   // made by this backup
  uint32_t newest_ = 0;
  uint32_t older_ = 0;
  std::optional<uint64_t> durable_epoch_;
};

}  // namespace atolldb::cli
