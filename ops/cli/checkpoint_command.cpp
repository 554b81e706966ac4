// `atoll checkpoint ls|verify|take`: the checkpoints of clusters with `durability.scheme =
// "silor"`. ls and verify only read, and the cluster may be live or dead.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/stored_checkpoints.h"
#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "ops/cli/wal_data.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

/// The known facts about one checkpoint.
struct ListedCheckpoint {
  std::optional<CheckpointMetadata> metadata;
  std::string damage;  // why the metadata cannot be read
  uint64_t files = 0;  // files with records that exist
  uint64_t records = 0;
  uint64_t bytes = 0;
};

/// The result of a check of one checkpoint.
struct VerifiedCheckpoint {
  uint64_t id = 0;
  uint64_t replay_epoch = 0;
  uint64_t end_epoch = 0;
  uint64_t files = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
  std::vector<std::string> problems;
};

Result<LogData> find_checkpoint_data(FileSystem& files, const ClusterChoice& choice,
                                     const DataOptions& options) {
  ATOLL_ASSIGN(LogData data, find_log_data(files, choice, options));
  if (data.savepoint.scheme == DurabilityScheme::silor) return data;
  return make_error(ExitCode::failed,
                    data.data_dir + ": its data has the durability scheme " +
                        std::string(to_string(data.savepoint.scheme)) +
                        ", which takes snapshots, and no checkpoints: see `atoll snapshot`");
}

/// Returns whether the savepoint names the checkpoint as newest or pinned.
bool is_needed(const Savepoint& savepoint, uint64_t id) {
  if (id == savepoint.snapshot) return true;
  return std::ranges::find(savepoint.pinned, id, &PinnedSnapshot::id) != savepoint.pinned.end();
}

/// Returns "newest"; "pinned" by a backup; "unneeded" if it will be deleted; or "unfinished" if it
/// is newer than the newest one.
const char* state_of(const Savepoint& savepoint, uint64_t id) {
  if (id == savepoint.snapshot) return "newest";
  if (is_needed(savepoint, id)) return "pinned";
  return id > savepoint.snapshot ? "unfinished" : "unneeded";
}

Result<std::map<uint64_t, ListedCheckpoint>> find_checkpoints(FileSystem& files,
                                                              const LogData& data) {
  std::map<uint64_t, ListedCheckpoint> found;
  ATOLL_ASSIGN(const auto stored, checkpoint_files_in(files, data.data_dir, data.directories));
  for (const StoredCheckpointFile& file : stored) {
    ListedCheckpoint& checkpoint = found[file.checkpoint];
    if (file.kind == StoredCheckpointKind::records) ++checkpoint.files;
    if (file.kind != StoredCheckpointKind::metadata) continue;
    auto metadata = read_checkpoint_metadata(files, data.data_dir, file.checkpoint);
    if (!metadata) {
      if (metadata.error().code != ExitCode::corruption) return std::unexpected(metadata.error());
      checkpoint.damage = metadata.error().message;
      continue;
    }
    for (const CheckpointFileInfo& info : metadata->files) {
      checkpoint.records += info.records;
      checkpoint.bytes += info.bytes;
    }
    checkpoint.metadata = *std::move(metadata);
  }
  // A savepoint may name a checkpoint of which no file is left.
  if (data.savepoint.snapshot != 0) found.try_emplace(data.savepoint.snapshot);
  return found;
}

void print_text(const LogData& data, const std::map<uint64_t, ListedCheckpoint>& checkpoints) {
  std::vector<std::vector<std::string>> rows = {
      {"CHECKPOINT", "STATE", "REPLAY EPOCH", "END EPOCH", "STORAGES", "FILES", "RECORDS", "SIZE"}};
  for (const auto& [id, checkpoint] : checkpoints) {
    const auto& metadata = checkpoint.metadata;
    rows.push_back({std::to_string(id), state_of(data.savepoint, id),
                    metadata ? std::to_string(metadata->replay_epoch) : "-",
                    metadata ? std::to_string(metadata->end_epoch) : "-",
                    metadata ? std::to_string(metadata->storages.size()) : "-",
                    std::to_string(checkpoint.files), format_count(checkpoint.records),
                    format_bytes(checkpoint.bytes)});
  }
  std::printf("%s", format_table(rows).c_str());
  for (const auto& [id, checkpoint] : checkpoints) {
    if (!checkpoint.damage.empty()) std::printf("%s\n", printable(checkpoint.damage).c_str());
  }
}

void print_json(const LogData& data, const std::map<uint64_t, ListedCheckpoint>& checkpoints) {
  Json array = Json::array();
  for (const auto& [id, checkpoint] : checkpoints) {
    const CheckpointMetadata metadata = checkpoint.metadata.value_or(CheckpointMetadata{});
    array.push_back({{"id", id},
                     {"state", state_of(data.savepoint, id)},
                     {"replay_epoch", metadata.replay_epoch},
                     {"end_epoch", metadata.end_epoch},
                     {"storages", metadata.storages.size()},
                     {"files", checkpoint.files},
                     {"records", checkpoint.records},
                     {"bytes", checkpoint.bytes},
                     {"damage", checkpoint.damage}});
  }
  const Json whole = {
      {"schema_version", 1}, {"data_dir", data.data_dir}, {"checkpoints", std::move(array)}};
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

Result<void> list_checkpoints(const ClusterChoice& choice, const DataOptions& options) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const LogData data, find_checkpoint_data(files, choice, options));
  ATOLL_ASSIGN(const auto checkpoints, find_checkpoints(files, data));
  options.json ? print_json(data, checkpoints) : print_text(data, checkpoints);
  return {};
}

/// Reads one file up to its end, or up to its first defect.
Result<void> verify_file(FileSystem& files, const CheckpointMetadata& metadata, size_t file,
                         VerifiedCheckpoint& verified) {
  ++verified.files;
  ATOLL_ASSIGN(CheckpointReader reader, CheckpointReader::open(files, metadata, file));
  for (;;) {
    ATOLL_ASSIGN(const CheckpointBlockHeader* block, reader.next());
    if (block == nullptr) break;
    verified.records += block->records;
  }
  verified.bytes += reader.bytes();
  CHECK(reader.bytes() == metadata.files[file].bytes);
  return {};
}

/// Returns the findings, which include corruption, or an error for any other problem.
Result<VerifiedCheckpoint> verify(FileSystem& files, const LogData& data, uint64_t id) {
  VerifiedCheckpoint verified;
  verified.id = id;
  const auto metadata = read_checkpoint_metadata(files, data.data_dir, id);
  if (!metadata) {
    if (metadata.error().code != ExitCode::corruption) return std::unexpected(metadata.error());
    verified.problems.push_back(metadata.error().message);
    return verified;
  }
  verified.replay_epoch = metadata->replay_epoch;
  verified.end_epoch = metadata->end_epoch;
  for (size_t file = 0; file < metadata->files.size(); ++file) {
    const Result<void> read = verify_file(files, *metadata, file, verified);
    if (read) continue;
    if (read.error().code != ExitCode::corruption) return std::unexpected(read.error());
    verified.problems.push_back(read.error().message);
  }
  return verified;
}

void print_text(const VerifiedCheckpoint& verified) {
  std::printf("checkpoint %s, replay epoch %s: %s files, %s records, %s: %s\n",
              std::to_string(verified.id).c_str(), std::to_string(verified.replay_epoch).c_str(),
              format_count(verified.files).c_str(), format_count(verified.records).c_str(),
              format_bytes(verified.bytes).c_str(),
              verified.problems.empty() ? paint(Colour::green, "intact").c_str()
                                        : paint(Colour::red, "corrupt").c_str());
  for (const std::string& problem : verified.problems) {
    std::printf("  %s\n", printable(problem).c_str());
  }
}

Json to_json(const VerifiedCheckpoint& verified) {
  return {{"id", verified.id},
          {"replay_epoch", verified.replay_epoch},
          {"end_epoch", verified.end_epoch},
          {"files", verified.files},
          {"records", verified.records},
          {"bytes", verified.bytes},
          {"intact", verified.problems.empty()},
          {"problems", verified.problems}};
}

/// Returns whether the cluster needs the checkpoint no longer. A live cluster may have replaced and
/// deleted it during the check.
bool is_gone(FileSystem& files, const ClusterChoice& choice, const DataOptions& options,
             uint64_t id) {
  const Result<LogData> now = find_log_data(files, choice, options);
  return now && !is_needed(now->savepoint, id);
}

Result<void> verify_checkpoints(const ClusterChoice& choice, const DataOptions& options) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const LogData data, find_checkpoint_data(files, choice, options));
  std::set<uint64_t> ids;
  if (data.savepoint.snapshot != 0) ids.insert(data.savepoint.snapshot);
  for (const PinnedSnapshot& pin : data.savepoint.pinned) ids.insert(pin.id);
  Json whole = {{"schema_version", 1}, {"data_dir", data.data_dir}, {"checkpoints", Json::array()}};
  std::string problem;
  for (const uint64_t id : ids) {
    const Result<VerifiedCheckpoint> verified = verify(files, data, id);
    const bool has_problem = !verified || !verified->problems.empty();
    if (has_problem && is_gone(files, choice, options, id)) continue;
    if (!verified) return std::unexpected(verified.error());
    if (!options.json) print_text(*verified);
    whole["checkpoints"].push_back(to_json(*verified));
    if (has_problem && problem.empty()) problem = verified->problems.front();
  }
  whole["intact"] = problem.empty();
  whole["problem"] = problem;
  if (options.json) {
    std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (ids.empty()) {
    std::printf("no checkpoint yet\n");
  }
  return problem.empty() ? Result<void>() : make_error(ExitCode::corruption, problem);
}

Result<void> take_checkpoint(const ClusterChoice& choice, const DataOptions& options) {
  ATOLL_ASSIGN(const Config config, find_running(choice));
  ATOLL_ASSIGN(const Json taken, call_coordinator(config, ControlOperation::checkpoint_take,
                                                  Json::object(), kSnapshotTimeout));
  const auto number = [&](const char* name) { return taken.value(name, uint64_t{0}); };
  if (options.json) {
    const Json whole = {{"schema_version", 1},
                        {"id", number("id")},
                        {"replay_epoch", number("replay_epoch")},
                        {"end_epoch", number("end_epoch")},
                        {"records", number("records")},
                        {"bytes", number("bytes")}};
    std::printf("%s\n", whole.dump(2).c_str());
  } else {
    std::printf("checkpoint %s: %s records, %s: a recovery replays the log from epoch %s on\n",
                std::to_string(number("id")).c_str(), format_count(number("records")).c_str(),
                format_bytes(number("bytes")).c_str(),
                std::to_string(number("replay_epoch")).c_str());
  }
  return {};
}

}  // namespace

void add_checkpoint_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("checkpoint", "List, verify and take checkpoints");
  group->require_subcommand(1);
  const auto options = std::make_shared<DataOptions>();
  const auto add = [&](const char* name, const char* help, auto run) {
    add_data_options(*add_cluster_command(*group, invocation, name, help, options, run), *options);
  };
  add("ls", "List the checkpoints", list_checkpoints);
  add("verify", "Check metadata and every block of the newest checkpoint", verify_checkpoints);
  CLI::App* take =
      add_cluster_command(*group, invocation, "take", "Take a checkpoint of a running cluster",
                          options, take_checkpoint);
  add_json_option(*take, options->json);
}

}  // namespace atolldb::cli
