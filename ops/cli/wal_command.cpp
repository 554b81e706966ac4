// `atoll wal ls|verify|dump`: the options of all three commands, and the command ls.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/log/log_files.h"
#include "engine/recovery/log_start.h"
#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "ops/cli/wal_data.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

struct Listed {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

/// The logs, ordered by incarnation, node, logger and directory.
using ListedLogs = std::map<std::tuple<uint64_t, uint32_t, uint32_t, std::string>, Listed>;

Result<ListedLogs> listed_logs(FileSystem& file_system, const LogData& data) {
  ATOLL_ASSIGN(auto files, log_files_in(file_system, data.directories));
  ListedLogs logs;
  for (const LogFilePlace& place : files) {
    const std::string path =
        path_in(node_directory(place.directory, place.node), to_string(place.name));
    ATOLL_ASSIGN(auto file, file_system.open_for_reading(path));
    ATOLL_ASSIGN(auto bytes, file->size());
    Listed& log = logs[{place.name.incarnation, place.node, place.name.logger, place.directory}];
    ++log.files;
    log.bytes += bytes;
  }
  // Adds the logs that the savepoint lists but that have no file.
  for (const Incarnation& incarnation : data.savepoint.incarnations) {
    for (const LoggerPlace& place : incarnation.loggers) {
      logs.try_emplace({incarnation.number, place.node, place.logger, place.directory});
    }
  }
  return logs;
}

const Incarnation* find(const Savepoint& savepoint, uint64_t number) {
  const auto found = std::ranges::find(savepoint.incarnations, number, &Incarnation::number);
  return found == savepoint.incarnations.end() ? nullptr : &*found;
}

void print_text(const LogData& data, const ListedLogs& logs) {
  std::vector<std::vector<std::string>> rows = {{"INCARNATION", "STATE", "FIRST EPOCH", "CUT",
                                                 "NODE", "LOGGER", "FILES", "SIZE", "DIRECTORY"}};
  for (const auto& [key, log] : logs) {
    const auto& [number, node, logger, directory] = key;
    const Incarnation* incarnation = find(data.savepoint, number);
    const bool is_cut = incarnation != nullptr && incarnation->cut_epoch;
    rows.push_back({std::to_string(number),
                    incarnation == nullptr ? "never begun" : state_of(*incarnation),
                    incarnation == nullptr ? "-" : std::to_string(incarnation->start_epoch),
                    is_cut ? std::to_string(*incarnation->cut_epoch) : "-", std::to_string(node),
                    std::to_string(logger), std::to_string(log.files), format_bytes(log.bytes),
                    printable(directory)});
  }
  std::printf("%s", format_table(rows).c_str());
}

void print_json(const LogData& data, const ListedLogs& logs) {
  Json array = Json::array();
  for (const auto& [key, log] : logs) {
    const auto& [number, node, logger, directory] = key;
    const Incarnation* incarnation = find(data.savepoint, number);
    Json line = {{"incarnation", number}, {"node", node},           {"logger", logger},
                 {"files", log.files},    {"bytes", log.bytes},     {"directory", directory},
                 {"cut_epoch", nullptr},  {"start_epoch", nullptr}, {"state", "never begun"}};
    if (incarnation != nullptr) {
      line["state"] = state_of(*incarnation);
      line["start_epoch"] = incarnation->start_epoch;
      if (incarnation->cut_epoch) line["cut_epoch"] = *incarnation->cut_epoch;
    }
    array.push_back(std::move(line));
  }
  const Json whole = {{"schema_version", 1}, {"data_dir", data.data_dir}, {"logs", array}};
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

std::string state_of(const Incarnation& incarnation) {
  return incarnation.cut_epoch ? "finished" : "running";
}

void add_data_options(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data-dir", options.data_dir,
                  "Data directory of a cluster without a config file")
      ->type_name("DIRECTORY");
  add_json_option(command, options.json);
}

Result<LogData> find_log_data(FileSystem& file_system, const ClusterChoice& choice,
                              const DataOptions& options) {
  LogData data;
  std::vector<std::string> configured;
  if (options.data_dir.empty()) {
    ATOLL_ASSIGN(const Config config, find_config(choice));
    data.data_dir = config.cluster.data_dir;
    configured = node_directories(config);
  } else {
    std::error_code error;
    data.data_dir = std::filesystem::absolute(options.data_dir, error).lexically_normal().string();
    while (data.data_dir.size() > 1 && data.data_dir.ends_with('/')) data.data_dir.pop_back();
  }
  Result<std::optional<SavepointRead>> read = read_savepoint(file_system, data.data_dir);
  // Repeats the read, because a live coordinator may be writing a slot of the savepoint.
  for (int again = 0; again < 3 && read && *read && !(*read)->damaged_slot.empty(); ++again) {
    read = read_savepoint(file_system, data.data_dir);
  }
  if (!read) return std::unexpected(read.error());
  if (!*read) {
    return make_error(ExitCode::failed, data.data_dir +
                                            ": holds no log: choose another directory with "
                                            "--data-dir, or the cluster with --cluster or -c");
  }
  data.savepoint = std::move((*read)->savepoint);
  data.damaged_slot = std::move((*read)->damaged_slot);
  data.directories = log_directories(data.savepoint, data.data_dir, configured);
  return data;
}

Result<void> refuse_checkpoints(const LogData& data) {
  if (data.savepoint.scheme == DurabilityScheme::gleaned) return {};
  return make_error(ExitCode::failed,
                    data.data_dir + ": its data has the durability scheme " +
                        std::string(to_string(data.savepoint.scheme)) +
                        ", which takes checkpoints, and no snapshots: see `atoll checkpoint`");
}

Result<void> list_logs(const ClusterChoice& choice, const LogOptions& options) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  ATOLL_ASSIGN(const ListedLogs logs, listed_logs(files, data));
  options.json ? print_json(data, logs) : print_text(data, logs);
  return {};
}

void add_wal_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("wal", "List, verify and show the logs of commits");
  group->require_subcommand(1);
  const auto options = std::make_shared<LogOptions>();
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* command = add_cluster_command(*group, invocation, name, help, options, run);
    add_data_options(*command, *options);
    return command;
  };
  add("ls", "List the logs", list_logs);
  add("verify", "Check every block; tell torn tails of a crash from corruption", verify_logs);
  CLI::App* dump = add("dump", "Show the records", dump_logs);
  // Checks the number, because the parser would read -1 as the largest number.
  dump->add_option("--epoch", options->epoch, "Show only this epoch")
      ->check(CLI::NonNegativeNumber)
      ->type_name("EPOCH");
  dump->add_option("--storage", options->storage, "Show only this storage: its id or its name")
      ->type_name("STORAGE");
}

}  // namespace atolldb::cli
