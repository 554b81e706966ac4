// `atoll backup`, and `atoll backup ls|verify|rm`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>
#include <vector>

#include "ops/backup/backup_folder.h"
#include "ops/backup/backup_time.h"
#include "ops/backup/restore_backup.h"
#include "ops/cli/backup_data.h"
#include "ops/cli/backup_source.h"
#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/owner_file.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"
#include "shared/file/file_system_wrappers.h"
#include "shared/file/posix_file_system.h"
#include "shared/metrics/disk_watch.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

std::string state_of(const ListedBackup& backup) {
  if (backup.manifest) return "complete";
  return backup.damage.empty() ? "incomplete" : "damaged";
}

Json to_json(const BackupManifest& manifest) {
  Json snapshots = Json::array();
  for (const BackupSnapshot& snapshot : manifest.snapshots) {
    snapshots.push_back({{"id", snapshot.id}, {"epoch", snapshot.epoch}});
  }
  return {{"id", manifest.id},
          {"state", "complete"},
          {"cluster", manifest.cluster},
          {"data_id", manifest.data_id},
          {"incarnation", manifest.incarnation},
          {"oldest_epoch", manifest.oldest_epoch},
          {"durable_epoch", manifest.durable_epoch},
          {"started", utc_text(manifest.started_ms)},
          {"finished", utc_text(manifest.finished_ms)},
          {"snapshots", snapshots},
          {"files", manifest.files.size()},
          {"bytes", manifest.bytes()},
          {"linked_bytes", manifest.linked_bytes}};
}

void print_whole(const Json& whole) {
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

/// Refuses a directory of a cluster's data as DIR. The lock file there belongs to the cluster, and
/// the folders there must hold nothing else.
Result<void> refuse_data_directory(FileSystem& files, const std::string& directory) {
  ATOLL_ASSIGN(const bool is_data, files.exists(owner_path(directory)));
  if (!is_data) return {};
  return make_error(ExitCode::usage,
                    fmt::format("backup: {} is a directory of a cluster's data: choose another "
                                "directory for backups",
                                directory));
}

/// The state of the directory of backups before a backup.
struct FolderBefore {
  std::vector<std::string> ids;
  std::vector<std::string> removed;        // incomplete backups
  std::optional<BackupManifest> previous;  // newest complete backup of the same data
};

/// REQUIRES: the exclusive lock of DIR is held, so no backup into it is in progress.
Result<FolderBefore> clean_up(FileSystem& files, const std::string& directory,
                              const std::string& data_id) {
  FolderBefore before;
  ATOLL_ASSIGN(const auto backups, list_backups(files, directory));
  for (const ListedBackup& backup : backups) {
    before.ids.push_back(backup.id);
    if (backup.manifest) {
      if (backup.manifest->data_id == data_id) before.previous = backup.manifest;
    } else if (backup.damage.empty()) {
      ATOLL_TRY(remove_backup(files, directory, backup.id));
      before.removed.push_back(backup.id);
    }
  }
  return before;
}

void print_taken(const BackupManifest& manifest, const std::string& directory) {
  std::printf("backup %s of cluster %s: %s files, %s, of which %s linked\n", manifest.id.c_str(),
              printable(manifest.cluster).c_str(), format_count(manifest.files.size()).c_str(),
              format_bytes(manifest.bytes()).c_str(), format_bytes(manifest.linked_bytes).c_str());
  std::printf("  `atoll restore %s --to DIRECTORY` restores epoch %s; --epoch: %s to %s\n",
              printable(backup_path(directory, manifest.id)).c_str(),
              std::to_string(manifest.durable_epoch).c_str(),
              std::to_string(manifest.oldest_epoch).c_str(),
              std::to_string(manifest.durable_epoch).c_str());
}

void print_warning(const std::string& text) {
  std::fprintf(stderr, "atoll: %s\n", printable(text).c_str());
}

/// Chooses the snapshots and takes the backup. The caller releases the pins of the snapshots.
Result<BackupManifest> take_pinned(FileSystem& files, BackupSource& source, BackupRequest request) {
  ATOLL_TRY(source.choose_snapshots(request.id));
  request.newest = source.newest();
  request.older = source.older();
  request.durable_epoch = source.durable_epoch();
  return take_backup(files, request);
}

/// Returns the complete backups to verify.
Result<std::vector<BackupManifest>> chosen_backups(FileSystem& files, const std::string& directory,
                                                   const std::string& id) {
  std::vector<BackupManifest> chosen;
  if (!id.empty()) {
    ATOLL_ASSIGN(auto manifest, find_backup(files, directory, id));
    chosen.push_back(std::move(manifest));
    return chosen;
  }
  ATOLL_ASSIGN(auto backups, list_backups(files, directory));
  for (ListedBackup& backup : backups) {
    if (!backup.damage.empty()) return make_error(ExitCode::corruption, backup.damage);
    if (backup.manifest) chosen.push_back(*std::move(backup.manifest));
  }
  return chosen;
}

Result<void> refuse_missing(FileSystem& files, const std::string& directory) {
  ATOLL_ASSIGN(const bool exists, files.exists(directory));
  if (exists) return {};
  return make_error(ExitCode::failed, directory + ": there is no such directory: choose another");
}

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

}  // namespace

Result<void> refuse_nested(const std::string& command, const std::string& directory,
                           const std::string& data_dir) {
  const std::string data = canonical_path(data_dir);
  if (!is_below(directory, data) && !is_below(data, directory)) return {};
  return make_error(ExitCode::usage,
                    fmt::format("{}: {} and the data directory {} lie in one another: choose "
                                "another directory",
                                command, directory, data));
}

Result<void> take_backup_of(const ClusterChoice& choice, const BackupOptions& options) {
  if (options.directory.empty()) {
    return make_error(ExitCode::usage, "backup: DIR is missing: see `atoll backup --help`");
  }
  catch_interrupts();
  PosixFileSystem files;
  const std::string directory = absolute_path(options.directory);
  ATOLL_ASSIGN(BackupSource source, BackupSource::open(files, choice, options));
  ATOLL_TRY(refuse_nested("backup", directory, source.data_dir()));
  ATOLL_TRY(refuse_data_directory(files, directory));
  ATOLL_TRY(files.make_directory(directory));
  ATOLL_ASSIGN(auto lock, FolderLock::exclusive(folder_lock_path(directory), kFolderUsers));
  ATOLL_ASSIGN(const FolderBefore before, clean_up(files, directory, source.data_id()));
  const std::string id = next_backup_id(unix_ms_now(), before.ids);
  if (std::ranges::find(before.ids, id) != before.ids.end()) {
    return make_error(ExitCode::failed,
                      fmt::format("{}: backup {} has the last possible id: remove "
                                  "it with `atoll backup rm`",
                                  directory, id));
  }
  ATOLL_TRY(files.make_directory(backup_path(directory, id)));
  ATOLL_TRY(lock.share());
  ATOLL_ASSIGN(const auto left_pins, source.remove_left_pins());
  ReservingFileSystem reserving(files, source.reserve_for(directory));
  auto taken = take_pinned(reserving, source,
                           {source.data_dir(), directory, id, source.cluster(), 0, 0,
                            before.previous, progress_line(), print_warning});
  const Result<void> released = source.release();
  if (!taken) {
    if (!released) print_error(released.error());
    // Best effort: the next backup removes an incomplete one that stays.
    if (!remove_backup(files, directory, id)) {
      std::fprintf(stderr, "atoll: %s: stays, incomplete\n", backup_path(directory, id).c_str());
    }
    return std::unexpected(taken.error());
  }
  const Result<void> noted =
      write_backup_note(source.data_dir(), {unix_ms_now() / 1'000, taken->id, directory});
  if (!noted) print_warning(noted.error().message);
  if (options.json) {
    Json whole = to_json(*taken);
    whole["schema_version"] = 1;
    whole["directory"] = directory;
    whole["removed_incomplete"] = before.removed;
    whole["removed_pins"] = left_pins;
    print_whole(whole);
  } else {
    for (const std::string& removed : before.removed) {
      std::printf("backup %s was incomplete: removed\n", removed.c_str());
    }
    print_taken(*taken, directory);
  }
  std::fflush(stdout);
  return released;
}

Result<void> list_backups_in(const BackupOptions& options) {
  PosixFileSystem files;
  const std::string directory = absolute_path(options.directory);
  ATOLL_TRY(refuse_missing(files, directory));
  ATOLL_ASSIGN(const auto backups, list_backups(files, directory));
  if (options.json) {
    Json list = Json::array();
    for (const ListedBackup& backup : backups) {
      list.push_back(backup.manifest ? to_json(*backup.manifest)
                                     : Json{{"id", backup.id}, {"state", state_of(backup)}});
      list.back()["damage"] = backup.damage;
    }
    print_whole({{"schema_version", 1}, {"directory", directory}, {"backups", list}});
    return {};
  }
  std::vector<std::vector<std::string>> rows = {
      {"BACKUP", "STATE", "CLUSTER", "OLDEST EPOCH", "LAST EPOCH", "FILES", "SIZE", "LINKED"}};
  for (const ListedBackup& backup : backups) {
    std::vector<std::string> row = {backup.id, state_of(backup), "-", "-", "-", "-", "-", "-"};
    if (backup.manifest) {
      const BackupManifest& manifest = *backup.manifest;
      row = {backup.id,
             "complete",
             printable(manifest.cluster),
             std::to_string(manifest.oldest_epoch),
             std::to_string(manifest.durable_epoch),
             std::to_string(manifest.files.size()),
             format_bytes(manifest.bytes()),
             format_bytes(manifest.linked_bytes)};
    }
    rows.push_back(std::move(row));
  }
  std::printf("%s", format_table(rows).c_str());
  for (const ListedBackup& backup : backups) {
    if (!backup.damage.empty()) std::printf("%s\n", printable(backup.damage).c_str());
  }
  return {};
}

Result<void> verify_backups_in(const BackupOptions& options) {
  catch_interrupts();
  PosixFileSystem files;
  const std::string directory = absolute_path(options.directory);
  ATOLL_TRY(refuse_missing(files, directory));
  ATOLL_ASSIGN(const auto lock, FolderLock::shared(folder_lock_path(directory), kFolderUsers));
  ATOLL_ASSIGN(const auto backups, chosen_backups(files, directory, options.id));
  Json list = Json::array();
  Result<void> verdict;
  for (const BackupManifest& manifest : backups) {
    const Result<void> intact =
        verify_backup(files, backup_path(directory, manifest.id), manifest, progress_line());
    if (!intact && intact.error().code != ExitCode::corruption) return intact;
    const std::string problem = intact ? "" : intact.error().message;
    list.push_back({{"id", manifest.id},
                    {"intact", intact.has_value()},
                    {"problem", problem},
                    {"files", manifest.files.size()},
                    {"bytes", manifest.bytes()}});
    if (!options.json) {
      std::printf(
          "backup %s: %s files, %s: %s\n", manifest.id.c_str(),
          format_count(manifest.files.size()).c_str(), format_bytes(manifest.bytes()).c_str(),
          intact ? paint(Colour::green, "intact").c_str() : paint(Colour::red, "damaged").c_str());
    }
    if (!intact && verdict) verdict = intact;
  }
  if (options.json) {
    print_whole({{"schema_version", 1},
                 {"directory", directory},
                 {"intact", verdict.has_value()},
                 {"problem", verdict ? "" : verdict.error().message},
                 {"backups", list}});
  } else if (backups.empty()) {
    std::printf("no complete backup yet\n");
  }
  return verdict;
}

Result<void> remove_backup_in(const BackupOptions& options) {
  PosixFileSystem files;
  const std::string directory = absolute_path(options.directory);
  ATOLL_TRY(refuse_missing(files, directory));
  ATOLL_ASSIGN(const auto lock, FolderLock::exclusive(folder_lock_path(directory), kFolderUsers));
  ATOLL_TRY(remove_backup(files, directory, options.id));
  if (options.json) {
    print_whole({{"schema_version", 1}, {"directory", directory}, {"id", options.id}});
  } else {
    std::printf("backup %s removed\n", printable(options.id).c_str());
  }
  return {};
}

void add_backup_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<BackupOptions>();
  CLI::App* group = app.add_subcommand(
      "backup", "Back up a running or stopped cluster; list, verify and remove backups");
  group->require_subcommand(0, 1);
  add_cluster_options(*group, invocation);
  add_data_options(*group, *options);
  group->add_option("DIR", options->directory, "Directory of the backups: gets a new one");
  group->callback([group, &invocation, options] {
    if (!group->get_subcommands().empty()) return;
    invocation.run = [&invocation, options] { return take_backup_of(invocation.choice, *options); };
  });
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* command = group->add_subcommand(name, help);
    command->add_option("DIR", options->directory, "Directory of the backups")->required();
    add_json_option(*command, options->json);
    command->callback(
        [&invocation, options, run] { invocation.run = [options, run] { return run(*options); }; });
    return command;
  };
  add("ls", "List the backups and the epochs that they can restore", list_backups_in);
  add("verify", "Check every file of the backups, and that they can be restored", verify_backups_in)
      ->add_option("ID", options->id, "Check only this backup");
  add("rm", "Remove a backup; files that other backups have stay", remove_backup_in)
      ->add_option("ID", options->id, "Backup to remove")
      ->required();
}

}  // namespace atolldb::cli
