#include "ops/backup/restore_backup.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/log/ddl_log.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "ops/backup/backup_copy.h"
#include "ops/backup/backup_folder.h"
#include "ops/backup/backup_time.h"
#include "ops/backup/restored_state.h"
#include "ops/launcher/owner_file.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"

namespace atolldb {
namespace {

class RestoreJob {
 public:
  RestoreJob(FileSystem& file_system, const RestoreRequest& request)
      : files_(file_system), request_(request) {
    CHECK(request.manifest.oldest_epoch <= request.epoch);
    CHECK(request.epoch <= request.manifest.durable_epoch);
  }

  Result<Restored> run() {
    for (const auto step : {&RestoreJob::begin, &RestoreJob::read_backup, &RestoreJob::copy_files,
                            &RestoreJob::write_ddl, &RestoreJob::write_times,
                            &RestoreJob::write_state, &RestoreJob::check, &RestoreJob::end}) {
      ATOLL_TRY((this->*step)());
    }
    return restored_;
  }

 private:
  /// Marks the restore as unfinished before it removes or creates anything else.
  Result<void> begin() {
    ATOLL_TRY(report_.begin_step("preparing the directory"));
    ATOLL_TRY(check_restore_target(files_, request_.to));
    restored_.id = new_owner_id();
    ATOLL_ASSIGN(auto location, request_.locate(request_.to));
    const DirectoryOwner owner = {
        restored_.id,       true, request_.manifest.cluster, request_.to, std::string(kDataRole),
        std::move(location)};
    ATOLL_TRY(write_owner_file(files_, restoring_path(request_.to), owner));
    ATOLL_TRY(remove_data_folders(files_, request_.to));
    return files_.make_directory(coordinator_directory(request_.to));
  }

  /// Finds the files that the state at the epoch needs.
  Result<void> read_backup() {
    ATOLL_TRY(report_.begin_step("reading the backup"));
    ATOLL_ASSIGN(const auto backup, request_.extension != nullptr
                                        ? Result<Savepoint>(request_.extension->savepoint)
                                        : savepoint_of_backup(files_, request_.folder));
    if (request_.epoch < backup.oldest_epoch() || request_.epoch > backup.largest_epoch) {
      return make_error(
          ExitCode::corruption,
          fmt::format("{}: lacks the state at epoch {}, which the manifest lists: the "
                      "backup is damaged: use another one",
                      savepoint_path(request_.folder), request_.epoch));
    }
    ATOLL_ASSIGN(const auto ddl, read_ddl(backup));
    state_ = savepoint_at(backup, request_.epoch, request_.to);
    restored_.snapshot = state_.snapshot;
    restored_.snapshot_epoch = state_.snapshot_epoch;
    if (state_.snapshot == 0) {
      ddl_ = ddl_at(ddl, request_.epoch, nullptr);
      return {};
    }
    ATOLL_ASSIGN(const RestoreBase base, state_.scheme == DurabilityScheme::silor
                                             ? find_checkpoint_files()
                                             : find_snapshot_files());
    ddl_ = ddl_at(ddl, request_.epoch, &base);
    return {};
  }

  /// Adds the files of the snapshot to `wanted_`.
  Result<RestoreBase> find_snapshot_files() {
    const std::string path = snapshot_metadata_path(request_.folder, state_.snapshot);
    ATOLL_ASSIGN(const auto metadata,
                 read_snapshot_metadata(files_, request_.folder, state_.snapshot));
    if (metadata.epoch != state_.snapshot_epoch) return is_of_other_epoch(path, metadata.epoch);
    for (const SnapshotFilePlace& place : metadata.files) {
      wanted_.insert(snapshot_file_path(request_.folder, place.node, place.snapshot));
    }
    wanted_.insert(path);
    RestoreBase base = {metadata.epoch, {}};
    for (const SnapshotStorage& storage : metadata.storages) base.storages.insert(storage.id);
    return base;
  }

  /// Adds the files of the checkpoint to `wanted_`.
  Result<RestoreBase> find_checkpoint_files() {
    const std::string path = checkpoint_metadata_path(request_.folder, state_.snapshot);
    ATOLL_ASSIGN(const auto metadata,
                 read_checkpoint_metadata(files_, request_.folder, state_.snapshot));
    RestoreBase base = {metadata.replay_epoch - 1, {}};
    if (base.epoch != state_.snapshot_epoch) return is_of_other_epoch(path, base.epoch);
    for (const CheckpointFileInfo& info : metadata.files) {
      const CheckpointFileName name = {metadata.id, info.writer, info.number};
      wanted_.insert(checkpoint_file_path(request_.folder, info.node, name));
    }
    wanted_.insert(path);
    for (const CheckpointStorage& storage : metadata.storages) base.storages.insert(storage.id);
    return base;
  }

  std::unexpected<Error> is_of_other_epoch(const std::string& path, uint64_t epoch) const {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: is of epoch {}, the savepoint says {}: the backup is "
                                  "damaged: use another one",
                                  path, epoch, state_.snapshot_epoch));
  }

  Result<std::vector<DdlRecord>> read_ddl(const Savepoint& backup) {
    if (request_.extension != nullptr) return request_.extension->ddl;
    ATOLL_ASSIGN(auto ddl,
                 read_ddl_log(files_, request_.folder, backup.cluster_uuid, backup.ddl_records));
    return std::move(ddl.records);
  }

  /// Returns the file's place in the archive, or null if it is in the backup.
  const ArchivedLog* find_archived(const BackupFile& file) const {
    if (request_.extension == nullptr) return nullptr;
    const auto found = request_.extension->logs.find(file.path);
    return found == request_.extension->logs.end() ? nullptr : &found->second;
  }

  bool is_wanted(const BackupFile& file) const {
    if (file.kind == BackupFileKind::log) {
      const ArchivedLog* archived = find_archived(file);
      if (archived != nullptr && archived->after_epoch >= request_.epoch) return false;
      const std::string name = file.path.substr(file.path.rfind('/') + 1);
      const auto log = parse_log_file_name(name);
      return log && std::ranges::any_of(state_.incarnations, [&](const Incarnation& incarnation) {
               return incarnation.number == log->incarnation;
             });
    }
    return wanted_.contains(path_in(request_.folder, file.path));
  }

  /// Copies the files and never links them. The new cluster deletes files, and a copied data
  /// directory must share no file with another one (R47).
  Result<void> copy_files() {
    for (const BackupFile& file : request_.manifest.files) {
      if (!is_wanted(file)) continue;
      ATOLL_TRY(report_.begin_step("copying " + file.path));
      const ArchivedLog* archived = find_archived(file);
      const std::string from =
          archived != nullptr ? archived->path : path_in(request_.folder, file.path);
      const std::string to = path_in(request_.to, file.path);
      const std::string folder = to.substr(0, to.rfind('/'));
      if (folders_.insert(folder).second) {
        ATOLL_TRY(files_.make_directory(folder));
      }
      ATOLL_ASSIGN(const FileSum sum, copy_file(files_, from, to, report_.counted()));
      ATOLL_TRY(check_sum(from, {file.bytes, file.crc32c}, sum));
      wanted_.erase(from);
      report_.add_file(sum.bytes);
    }
    if (!wanted_.empty()) {
      return make_error(ExitCode::corruption,
                        fmt::format("{}: the manifest does not list this file: the backup is "
                                    "damaged: use another one",
                                    *wanted_.begin()));
    }
    for (const std::string& folder : folders_) {
      ATOLL_TRY(files_.sync_directory(folder));
    }
    restored_.files = report_.progress().files;
    restored_.bytes = report_.progress().bytes;
    return files_.sync_directory(request_.to);
  }

  Result<void> write_ddl() {
    ATOLL_TRY(report_.begin_step("writing the DDL log"));
    ATOLL_ASSIGN(auto log, DdlLog::open(files_, request_.to, state_.cluster_uuid));
    for (const DdlRecord& record : ddl_) {
      ATOLL_TRY(log.append(record));
    }
    state_.ddl_records = ddl_.size();
    return {};
  }

  /// Keeps the times of the epochs from the snapshot up to the restored epoch. The restored data do
  /// not have later epochs, and none of their backups can restore earlier ones.
  Result<void> write_times() {
    ATOLL_ASSIGN(const auto times,
                 request_.extension != nullptr
                     ? Result<std::vector<EpochTime>>(request_.extension->times)
                     : read_epoch_times(files_, request_.folder, state_.cluster_uuid));
    if (times.empty() || times.front().epoch > request_.epoch) return {};
    ATOLL_ASSIGN(auto writer, EpochTimesWriter::open(files_, request_.to, state_.cluster_uuid));
    for (const EpochTime& time : times) {
      if (time.epoch > request_.epoch) break;
      if (time.epoch < state_.snapshot_epoch) continue;
      ATOLL_TRY(writer.add(time));
    }
    return writer.sync();
  }

  Result<void> write_state() {
    ATOLL_TRY(report_.begin_step("writing the savepoint"));
    CHECK(state_.generation == 0);
    for (int slot = 0; slot < 2; ++slot) {
      ATOLL_TRY(write_savepoint(files_, request_.to, state_));
    }
    return {};
  }

  Result<void> check() {
    ATOLL_TRY(report_.begin_step("checking the restored data"));
    return check_restorable(files_, request_.to);
  }

  Result<void> end() {
    ATOLL_TRY(files_.sync_directory(request_.to));
    ATOLL_TRY(files_.rename(restoring_path(request_.to), owner_path(request_.to)));
    return files_.sync_directory(request_.to);
  }

  FileSystem& files_;
  const RestoreRequest& request_;
  ProgressReport report_{request_.on_progress};
  Restored restored_;
  Savepoint state_;
  std::vector<DdlRecord> ddl_;
  std::set<std::string> wanted_;  // paths of backup files that are still to be copied, except logs
  std::set<std::string> folders_;
};

/// `sure_ms`: every commit before this time is in the state at the last epoch of the manifest.
Result<EpochTime> find_time(const std::string& place, const BackupManifest& manifest,
                            const std::vector<EpochTime>& times, uint64_t sure_ms,
                            uint64_t unix_ms) {
  if (unix_ms > sure_ms) {
    return make_error(
        ExitCode::failed,
        fmt::format("{}: the backup surely has the commits up to {}, not up to {}: "
                    "use a later backup, or choose an epoch up to {}",
                    place, utc_text(sure_ms), utc_text(unix_ms), manifest.durable_epoch));
  }
  const auto found = epoch_at(times, unix_ms);
  if (!found || found->epoch < manifest.oldest_epoch) {
    const auto first = std::ranges::find_if(
        times, [&](const EpochTime& time) { return time.epoch >= manifest.oldest_epoch; });
    return make_error(ExitCode::failed,
                      fmt::format("{}: the time of no epoch of the backup is known up to {}: {}",
                                  place, utc_text(unix_ms),
                                  first == times.end()
                                      ? fmt::format("choose an epoch of {} to {}",
                                                    manifest.oldest_epoch, manifest.durable_epoch)
                                      : "the first known one is " + utc_text(first->unix_ms)));
  }
  return EpochTime{std::min(found->epoch, manifest.durable_epoch), found->unix_ms};
}

/// Returns whether a target may hold a file of this name although no restore into it has begun.
bool is_harmless_name(std::string_view name) { return name == "lock" || name == "lost+found"; }

}  // namespace

Result<void> check_restore_target(FileSystem& file_system, const std::string& to) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(to));
  if (!exists) return {};
  ATOLL_ASSIGN(const auto names, file_system.list(to));
  const std::string marker = restoring_path(to).substr(to.size() + 1);
  const bool is_begun = std::ranges::find(names, marker) != names.end();
  const auto is_left = [&](const std::string& name) {
    if (is_harmless_name(name) || name.starts_with(marker)) return true;
    return is_begun && (name == "coordinator" || parse_node_directory_name(name).has_value());
  };
  for (const std::string& name : names) {
    if (is_left(name)) continue;
    return make_error(
        ExitCode::failed,
        fmt::format("{}: is not empty, it holds {}: restore into a new directory", to, name));
  }
  return {};
}

Result<Restored> restore_backup(FileSystem& file_system, const RestoreRequest& request) {
  return RestoreJob(file_system, request).run();
}

Result<EpochTime> epoch_of_time(FileSystem& file_system, const std::string& folder,
                                const BackupManifest& manifest, uint64_t unix_ms) {
  ATOLL_ASSIGN(const auto times, read_epoch_times(file_system, folder, manifest.cluster_uuid));
  return find_time(folder, manifest, times, manifest.started_ms, unix_ms);
}

Result<EpochTime> epoch_of_time(const std::string& archive, const ExtendedBackup& extended,
                                uint64_t unix_ms) {
  const BackupManifest& manifest = extended.manifest;
  uint64_t sure_ms = manifest.started_ms;
  for (const EpochTime& time : extended.times) {
    if (time.epoch <= manifest.durable_epoch) sure_ms = std::max(sure_ms, time.unix_ms);
  }
  return find_time(archive, manifest, extended.times, sure_ms, unix_ms);
}

Result<void> verify_backup(FileSystem& file_system, const std::string& folder,
                           const BackupManifest& manifest, const OnBackupProgress& on_progress) {
  ProgressReport report(on_progress);
  for (const BackupFile& file : manifest.files) {
    ATOLL_TRY(report.begin_step("checking " + file.path));
    const std::string path = path_in(folder, file.path);
    ATOLL_ASSIGN(const bool exists, file_system.exists(path));
    if (!exists) {
      return make_error(ExitCode::corruption,
                        fmt::format("{}: is missing, the manifest says {} bytes with the CRC32C "
                                    "{:08x}: the backup is damaged: use another one",
                                    path, file.bytes, file.crc32c));
    }
    ATOLL_ASSIGN(const FileSum sum, sum_of_file(file_system, path, report.counted()));
    ATOLL_TRY(check_sum(path, {file.bytes, file.crc32c}, sum));
    report.add_file(sum.bytes);
  }
  ATOLL_TRY(report.begin_step("checking that it can be restored"));
  return check_restorable(file_system, folder);
}

}  // namespace atolldb
