// `atoll restore`: restores a backup into a new data directory, at an epoch or a time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "engine/archive/archive_content.h"
#include "ops/backup/archived_log.h"
#include "ops/backup/backup_folder.h"
#include "ops/backup/backup_time.h"
#include "ops/backup/restore_backup.h"
#include "ops/cli/backup_data.h"
#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/process_lock.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/posix_file_system.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

/// A directory of backups (DIR), and the id of a backup if the command line names one.
struct BackupChoice {
  std::string directory;
  std::string id;
};

BackupChoice split_choice(const std::string& from) {
  std::string path = absolute_path(from);
  const size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  if (!is_backup_id(name) || slash == 0) return {std::move(path), ""};
  return {path.substr(0, slash), name};
}

/// The state to restore: that of the backup of `manifest` at the end of `epoch`.
struct RestorePoint {
  BackupManifest manifest;
  uint64_t epoch = 0;
  std::optional<EpochTime> time;            // the recorded time that --time chose
  std::optional<ExtendedBackup> extension;  // with --archive
};

/// Returns the backups that may be restored, the newest first: the named one, or all complete ones
/// of the same data as the newest.
Result<std::vector<BackupManifest>> list_candidates(FileSystem& files, const BackupChoice& choice) {
  std::vector<BackupManifest> manifests;
  if (!choice.id.empty()) {
    ATOLL_ASSIGN(auto manifest, find_backup(files, choice.directory, choice.id));
    manifests.push_back(std::move(manifest));
    return manifests;
  }
  ATOLL_ASSIGN(auto backups, list_backups(files, choice.directory));
  for (ListedBackup& backup : std::views::reverse(backups)) {
    if (!backup.manifest) continue;
    if (!manifests.empty() && !backup.manifest->is_of_same_data(manifests.front())) continue;
    manifests.push_back(*std::move(backup.manifest));
  }
  if (manifests.empty()) {
    return make_error(ExitCode::failed,
                      choice.directory + ": holds no complete backup: see `atoll backup ls`");
  }
  return manifests;
}

/// Returns the epoch for the time, from the newest candidate (list_candidates) that knows one.
Result<RestorePoint> point_of_time(FileSystem& files, const BackupChoice& choice, uint64_t time) {
  ATOLL_ASSIGN(auto manifests, list_candidates(files, choice));
  std::optional<Error> problem;
  for (BackupManifest& manifest : manifests) {
    const auto found =
        epoch_of_time(files, backup_path(choice.directory, manifest.id), manifest, time);
    if (found) return RestorePoint{std::move(manifest), found->epoch, *found, {}};
    if (found.error().code != ExitCode::failed) return std::unexpected(found.error());
    if (!problem) problem = found.error();
  }
  CHECK(problem.has_value());  // at least one backup was searched
  return std::unexpected(*problem);
}

Result<RestorePoint> point_of_epoch(FileSystem& files, const BackupChoice& choice,
                                    std::optional<uint64_t> epoch) {
  auto manifest = choice.id.empty() ? choose_backup(files, choice.directory, epoch)
                                    : find_backup(files, choice.directory, choice.id);
  if (!manifest) return std::unexpected(manifest.error());
  const uint64_t wanted = epoch.value_or(manifest->durable_epoch);
  if (wanted < manifest->oldest_epoch || wanted > manifest->durable_epoch) {
    return make_error(
        ExitCode::failed,
        fmt::format("backup {}: has the states at the epochs {} to {}, not at {}: "
                    "choose one of these, or another backup",
                    manifest->id, manifest->oldest_epoch, manifest->durable_epoch, wanted));
  }
  return RestorePoint{*std::move(manifest), wanted, {}, {}};
}

/// Returns the state to restore from a backup that the log of an archive extends. Without an epoch
/// and a time, this is the last state.
Result<RestorePoint> point_with_archive(const std::string& archive, ExtendedBackup extended,
                                        std::optional<uint64_t> epoch,
                                        std::optional<uint64_t> time) {
  RestorePoint point = {extended.manifest, epoch.value_or(extended.manifest.durable_epoch), {}, {}};
  const BackupManifest& manifest = point.manifest;
  if (time) {
    const auto found = epoch_of_time(archive, extended, *time);
    if (!found) {
      return make_error(found.error().code, fmt::format("{}; the archive ends: {}",
                                                        found.error().message, extended.end));
    }
    point.epoch = found->epoch;
    point.time = *found;
  }
  if (point.epoch < manifest.oldest_epoch || point.epoch > manifest.durable_epoch) {
    return make_error(
        ExitCode::failed,
        fmt::format("backup {} with {}: has the states at the epochs {} to {}, not at {}: {}",
                    manifest.id, archive, manifest.oldest_epoch, manifest.durable_epoch,
                    point.epoch, extended.end));
  }
  point.extension = std::move(extended);
  return point;
}

/// Chooses the newest backup that has the state, with the log of the archive. A start-up from the
/// newest backup has the least log to recover.
Result<RestorePoint> find_point_with_archive(FileSystem& files, const BackupChoice& choice,
                                             const RestoreOptions& options) {
  const std::string archive = absolute_path(options.archive);
  ATOLL_ASSIGN(const ArchiveContent content, read_archive(files, archive));
  std::optional<uint64_t> time;
  if (!options.time.empty()) {
    ATOLL_ASSIGN(time, parse_utc(options.time));
  }
  ATOLL_ASSIGN(const auto manifests, list_candidates(files, choice));
  std::optional<Error> problem;
  for (const BackupManifest& manifest : manifests) {
    ATOLL_ASSIGN(auto extended, extend_backup(files, backup_path(choice.directory, manifest.id),
                                              manifest, archive, content));
    auto point = point_with_archive(archive, std::move(extended), options.epoch, time);
    if (point || point.error().code != ExitCode::failed) return point;
    if (!problem) problem = point.error();
  }
  CHECK(problem.has_value());  // at least one backup was searched
  return std::unexpected(*problem);
}

Result<RestorePoint> find_point(FileSystem& files, const BackupChoice& choice,
                                const RestoreOptions& options) {
  if (options.epoch && !options.time.empty()) {
    return make_error(ExitCode::usage, "restore: choose --epoch or --time, not both");
  }
  if (!options.archive.empty()) return find_point_with_archive(files, choice, options);
  if (options.time.empty()) return point_of_epoch(files, choice, options.epoch);
  ATOLL_ASSIGN(const uint64_t time, parse_utc(options.time));
  return point_of_time(files, choice, time);
}

void print_restored(const RestorePoint& point, const Restored& restored, const std::string& to) {
  std::printf("%s: the state of cluster %s at the end of epoch %s, from backup %s: %s files, %s\n",
              printable(to).c_str(), printable(point.manifest.cluster).c_str(),
              std::to_string(point.epoch).c_str(), point.manifest.id.c_str(),
              format_count(restored.files).c_str(), format_bytes(restored.bytes).c_str());
  if (point.time) {
    std::printf("  every commit of this epoch took place before %s\n",
                utc_text(point.time->unix_ms).c_str());
  }
  std::printf(
      "  `atoll up -c FILE` starts it, with cluster.data_dir = \"%s\" and new `directories` "
      "of the nodes in FILE\n",
      printable(to).c_str());
}

Json to_json(const RestorePoint& point, const Restored& restored, const std::string& to) {
  Json whole = {{"schema_version", 1},
                {"backup", point.manifest.id},
                {"to", to},
                {"id", restored.id},
                {"epoch", point.epoch},
                {"time", nullptr},
                {"archived_files", 0},
                {"snapshot", restored.snapshot},
                {"snapshot_epoch", restored.snapshot_epoch},
                {"files", restored.files},
                {"bytes", restored.bytes}};
  if (point.extension) whole["archived_files"] = point.extension->logs.size();
  if (point.time) whole["time"] = utc_text(point.time->unix_ms);
  return whole;
}

}  // namespace

Result<void> restore_to(const RestoreOptions& options) {
  catch_interrupts();
  PosixFileSystem files;
  const BackupChoice choice = split_choice(options.from);
  const std::string to = absolute_path(options.to);
  ATOLL_ASSIGN(const auto shared,
               FolderLock::shared(folder_lock_path(choice.directory), kFolderUsers));
  ATOLL_ASSIGN(RestorePoint point, find_point(files, choice, options));
  // Checks the target before the lock is taken, because a lock creates a file. So no file is
  // created in a directory with other content.
  ATOLL_TRY(check_restore_target(files, to));
  ATOLL_TRY(files.make_directory(to));
  ATOLL_ASSIGN(ProcessLock lock, ProcessLock::acquire_directory(to, "atoll restore", "--to"));
  const auto restored =
      restore_backup(files, {.folder = backup_path(choice.directory, point.manifest.id),
                             .to = to,
                             .manifest = point.manifest,
                             .epoch = point.epoch,
                             .on_progress = progress_line(),
                             .extension = point.extension ? &*point.extension : nullptr});
  lock.forget_processes();
  if (!restored) return std::unexpected(restored.error());
  if (options.json) {
    std::printf(
        "%s\n",
        to_json(point, *restored, to).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    print_restored(point, *restored, to);
  }
  return {};
}

void add_restore_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<RestoreOptions>();
  CLI::App* command = app.add_subcommand("restore", "Restore a backup into a new data directory");
  command->add_option("BACKUP", options->from, "Directory of backups, or one backup in it: DIR/ID")
      ->required();
  command->add_option("--to", options->to, "New data directory")
      ->required()
      ->type_name("DIRECTORY");
  command
      ->add_option("--epoch", options->epoch,
                   "Restore the state at the end of this epoch; without it, of the last one")
      ->check(CLI::NonNegativeNumber)
      ->type_name("EPOCH");
  command
      ->add_option("--time", options->time,
                   "Restore the last known state before this time, like 2026-11-23T04:05:06Z")
      ->type_name("TIME");
  command
      ->add_option(
          "--archive", options->archive,
          "Add the log of this archive after the backup's: archive.directory of the config")
      ->type_name("DIRECTORY");
  add_json_option(*command, options->json);
  command->callback(
      [&invocation, options] { invocation.run = [options] { return restore_to(*options); }; });
}

}  // namespace atolldb::cli
