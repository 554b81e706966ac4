// `atoll snapshot ls|verify|take|pin|unpin|rm|damage`: the options of all commands, and the
// commands ls and take.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/snapshot/stored_snapshots.h"
#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/snapshot_data.h"
#include "ops/cli/terminal.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

/// Returns the size of the file, or nothing if a live cluster has just deleted it.
Result<std::optional<uint64_t>> size_of(FileSystem& file_system, const std::string& path) {
  auto file = file_system.open_for_reading(path);
  if (!file) {
    auto exists = file_system.exists(path);
    if (exists && !*exists) return std::nullopt;
    return std::unexpected(file.error());
  }
  return (*file)->size();
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text.empty() ? "-" : text;
}

void print_text(const LogData& data, const std::map<uint32_t, ListedSnapshot>& snapshots) {
  std::vector<std::vector<std::string>> rows = {
      {"SNAPSHOT", "STATE", "EPOCH", "BASE", "STORAGES", "FILES", "SIZE", "PINS"}};
  for (const auto& [id, snapshot] : snapshots) {
    const auto& metadata = snapshot.metadata;
    rows.push_back({std::to_string(id), state_of(data.savepoint, id, snapshot),
                    metadata ? std::to_string(metadata->epoch) : "-",
                    metadata && metadata->base != 0 ? std::to_string(metadata->base) : "-",
                    metadata ? std::to_string(metadata->storages.size()) : "-",
                    std::to_string(snapshot.files), format_bytes(snapshot.bytes),
                    joined_names(snapshot.pins)});
  }
  std::printf("%s", format_table(rows).c_str());
  for (const auto& [id, snapshot] : snapshots) {
    if (!snapshot.damage.empty()) std::printf("%s\n", printable(snapshot.damage).c_str());
  }
}

void print_json(const LogData& data, const std::map<uint32_t, ListedSnapshot>& snapshots) {
  Json array = Json::array();
  for (const auto& [id, snapshot] : snapshots) {
    Json line = {{"id", id},
                 {"state", state_of(data.savepoint, id, snapshot)},
                 {"newest", snapshot.is_newest},
                 {"pins", snapshot.pins},
                 {"files", snapshot.files},
                 {"bytes", snapshot.bytes},
                 {"epoch", nullptr},
                 {"base", nullptr},
                 {"storages", nullptr},
                 {"damage", snapshot.damage}};
    if (snapshot.metadata) {
      line["epoch"] = snapshot.metadata->epoch;
      line["base"] = snapshot.metadata->base;
      line["storages"] = snapshot.metadata->storages.size();
    }
    array.push_back(std::move(line));
  }
  const Json whole = {{"schema_version", 1}, {"data_dir", data.data_dir}, {"snapshots", array}};
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

Result<std::map<uint32_t, ListedSnapshot>> find_snapshots(FileSystem& file_system,
                                                          const LogData& data) {
  std::map<uint32_t, ListedSnapshot> snapshots;
  ATOLL_ASSIGN(auto files, snapshot_files_in(file_system, data.data_dir, data.directories));
  for (const StoredSnapshotFile& file : files) {
    ListedSnapshot& snapshot = snapshots[file.snapshot];
    if (file.kind == StoredSnapshotKind::pages) {
      ATOLL_ASSIGN(auto bytes, size_of(file_system, file.path));
      if (!bytes) continue;
      ++snapshot.files;
      snapshot.bytes += *bytes;
    } else if (file.kind == StoredSnapshotKind::metadata) {
      auto metadata = read_snapshot_metadata(file_system, data.data_dir, file.snapshot);
      if (metadata) {
        snapshot.metadata = *std::move(metadata);
      } else if (metadata.error().code == ExitCode::corruption) {
        snapshot.damage = metadata.error().message;
      } else {
        return std::unexpected(metadata.error());
      }
    }
  }
  if (data.savepoint.snapshot != 0) snapshots[data.savepoint.snapshot].is_newest = true;
  for (const PinnedSnapshot& pin : data.savepoint.pinned) {
    snapshots[pin.id].pins.push_back(pin.name);
  }
  for (const KeptSnapshot& kept : data.savepoint.kept) snapshots[kept.id].is_kept = true;
  for (auto& [id, snapshot] : snapshots) {
    const bool is_kept = snapshot.is_newest || snapshot.is_kept || !snapshot.pins.empty();
    if (!is_kept || !snapshot.metadata) continue;
    for (const SnapshotFilePlace& file : snapshot.metadata->files) {
      const auto older = snapshots.find(file.snapshot);
      if (older != snapshots.end()) older->second.is_referred_to = true;
    }
  }
  return snapshots;
}

std::string state_of(const Savepoint& savepoint, uint32_t id, const ListedSnapshot& snapshot) {
  if (snapshot.is_newest) return "newest";
  if (!snapshot.pins.empty()) return "pinned";
  if (snapshot.is_kept) return "kept";
  if (snapshot.is_referred_to) return "in use";
  return id > savepoint.snapshot ? "unfinished" : "unneeded";
}

Result<void> list_snapshots(const ClusterChoice& choice, const SnapshotOptions& options) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  ATOLL_TRY(refuse_checkpoints(data));
  ATOLL_ASSIGN(const auto snapshots, find_snapshots(files, data));
  options.json ? print_json(data, snapshots) : print_text(data, snapshots);
  return {};
}

Result<void> take_snapshot(const ClusterChoice& choice, const SnapshotOptions& options) {
  ATOLL_ASSIGN(const Config config, find_running(choice));
  ATOLL_ASSIGN(const Json taken, call_coordinator(config, ControlOperation::snapshot_take,
                                                  Json::object(), kSnapshotTimeout));
  const auto id = taken.value("id", uint64_t{0});
  if (options.json) {
    const Json whole = {{"schema_version", 1}, {"id", id}, {"epoch", taken.value("epoch", 0ull)}};
    std::printf("%s\n", whole.dump(2).c_str());
  } else {
    std::printf("snapshot %s: all durable commits, up to epoch %s\n", std::to_string(id).c_str(),
                std::to_string(taken.value("epoch", 0ull)).c_str());
  }
  return {};
}

void add_snapshot_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("snapshot", "List, verify, take, keep and remove snapshots");
  group->require_subcommand(1);
  const auto options = std::make_shared<SnapshotOptions>();
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* command = add_cluster_command(*group, invocation, name, help, options, run);
    add_data_options(*command, *options);
    return command;
  };
  add("ls", "List the snapshots", list_snapshots);
  add("verify", "Check metadata, files and every page of the newest and the pinned snapshots",
      verify_snapshots)
      ->add_option("ID", options->id, "Check only this snapshot")
      ->check(CLI::Range(uint32_t{1}, SnapshotPointer::kMaxSnapshot));
  const auto id_range = CLI::Range(uint32_t{1}, SnapshotPointer::kMaxSnapshot);
  CLI::App* pin = add("pin", "Keep a snapshot until it is unpinned", pin_snapshot);
  pin->add_option("ID", options->id, "Snapshot to keep; without it the newest one")
      ->check(id_range);
  pin->add_option("--name", options->name, "Name of the pin; without it snapshot-<ID>")
      ->type_name("NAME");
  add("unpin", "Remove a pin of a snapshot", unpin_snapshot)
      ->add_option("PIN", options->pin, "Name of the pin, or id of a snapshot with one pin")
      ->required();
  add("rm", "Remove the files of an unneeded snapshot", remove_snapshot)
      ->add_option("ID", options->id, "Snapshot to remove")
      ->required()
      ->check(id_range);
  const auto add_live = [&](const char* name, const char* help, auto run) {
    add_json_option(*add_cluster_command(*group, invocation, name, help, options, run),
                    options->json);
  };
  add_live("take", "Take a snapshot of all durable commits", take_snapshot);
  add_live("damage", "List known damage: files, pages and ranges of keys that cannot be read",
           list_damage);
}

}  // namespace atolldb::cli
