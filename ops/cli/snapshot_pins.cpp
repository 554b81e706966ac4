// `atoll snapshot pin|unpin|rm`: the coordinator of a running cluster makes the change. For a dead
// cluster this program makes it, under the locks of its directories. Each directory must be where
// its owner file says (R47, R50).
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/log/savepoint_snapshots.h"
#include "engine/recovery/retention.h"
#include "ops/cli/cluster_call.h"
#include "ops/cli/snapshot_data.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/data_lock.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

/// A change of a dead cluster's data. Returns the reply that the coordinator of a live cluster
/// would give.
using Change = std::function<Result<Json>(FileSystem&, LogData&)>;

/// Returns the chosen cluster if it runs. Returns nothing if it is down, or if --data-dir is given.
Result<std::optional<Config>> find_live(const ClusterChoice& choice,
                                        const SnapshotOptions& options) {
  if (!options.data_dir.empty()) return std::nullopt;
  const Result<Config> config = find_running(choice);
  if (config) return *config;
  if (config.error().code == ExitCode::not_running) return std::nullopt;
  return std::unexpected(config.error());
}

Result<Json> change_dead(const ClusterChoice& choice, const SnapshotOptions& options,
                         const Change& change) {
  PosixFileSystem files;
  // Checks the directory before the locks are taken, because a lock creates a file. So no file is
  // created in a directory that belongs to no cluster.
  ATOLL_ASSIGN(const LogData found, find_log_data(files, choice, options));
  const std::vector<std::string> directories(found.directories.begin(), found.directories.end());
  ATOLL_ASSIGN(auto lock, lock_dead_data("atoll snapshot", found.data_dir, directories, files));
  Result<LogData> data =
      find_log_data(files, choice, options);  // read again: no other process changes it now
  Result<Json> done = data ? change(files, *data) : std::unexpected(data.error());
  lock.forget_processes();
  return done;
}

Result<Json> change_any(const ClusterChoice& choice, const SnapshotOptions& options,
                        ControlOperation operation, const Json& body, const Change& change) {
  ATOLL_ASSIGN(const auto live, find_live(choice, options));
  if (!live) return change_dead(choice, options, change);
  return call_coordinator(*live, operation, body, kSnapshotTimeout);
}

void show(const SnapshotOptions& options, const Json& done, const std::string& text) {
  if (!options.json) {
    std::printf("%s\n", printable(text).c_str());
    return;
  }
  Json whole = {{"schema_version", 1}};
  for (const char* member : {"id", "epoch", "name", "files"}) {
    if (done.contains(member)) whole[member] = done[member];
  }
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

Json to_json(const PinnedSnapshot& pin) {
  return {{"id", pin.id}, {"epoch", pin.epoch}, {"name", pin.name}};
}

PinnedSnapshot pin_of(const Json& done) {
  return {done.value("id", 0u), done.value("epoch", uint64_t{0}), done.value("name", "")};
}

std::string id_text(const Json& done) { return std::to_string(done.value("id", 0u)); }

/// Refuses names that JSON or a terminal would not show unchanged in one line.
Result<void> check_name(const std::string& name) {
  const std::string text = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
  const bool is_one_line = name.find_first_of("\n\t") == std::string::npos;
  if (Json::parse(text).get<std::string>() == name && printable(name) == name && is_one_line) {
    return {};
  }
  return make_error(ExitCode::usage,
                    "pin \"" + printable(name) +
                        "\": the name has control characters or is not UTF-8: choose another name");
}

}  // namespace

Result<void> pin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options) {
  ATOLL_TRY(check_name(options.name));
  if (options.name.starts_with(kBackupPinPrefix)) {
    return make_error(ExitCode::usage, "pin \"" + printable(options.name) +
                                           "\": names that begin with \"" +
                                           std::string(kBackupPinPrefix) +
                                           "\" belong to `atoll backup`: choose another name");
  }
  const auto pinned = make_pin(choice, options);
  if (!pinned) return std::unexpected(pinned.error());
  show(options, to_json(*pinned),
       "snapshot " + std::to_string(pinned->id) + " is pinned as " + pinned->name +
           ": it is kept until `atoll snapshot unpin`");
  return {};
}

Result<PinnedSnapshot> make_pin(const ClusterChoice& choice, const SnapshotOptions& options) {
  Json body = {{"id", options.id.value_or(0)}};
  if (!options.name.empty()) body["name"] = options.name;
  ATOLL_ASSIGN(const Json pinned,
               change_any(choice, options, ControlOperation::snapshot_pin, body,
                          [&](FileSystem& files, LogData& data) -> Result<Json> {
                            ATOLL_TRY(refuse_checkpoints(data));
                            ATOLL_ASSIGN(
                                const auto chosen,
                                choose_pin(data.savepoint, options.id.value_or(0), options.name));
                            ATOLL_TRY(atolldb::pin_snapshot(files, data.data_dir, data.savepoint,
                                                            chosen.id, chosen.name));
                            return to_json(chosen);
                          }));
  return pin_of(pinned);
}

Result<void> unpin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options) {
  ATOLL_TRY(check_name(options.pin));
  ATOLL_ASSIGN(const PinnedSnapshot unpinned, remove_pin(choice, options));
  show(options, to_json(unpinned),
       "snapshot " + std::to_string(unpinned.id) + ": pin " + unpinned.name +
           " removed: the running cluster or the next start deletes the files that nothing else "
           "needs");
  return {};
}

Result<PinnedSnapshot> remove_pin(const ClusterChoice& choice, const SnapshotOptions& options) {
  ATOLL_ASSIGN(
      const Json unpinned,
      change_any(choice, options, ControlOperation::snapshot_unpin, Json{{"pin", options.pin}},
                 [&](FileSystem& files, LogData& data) -> Result<Json> {
                   ATOLL_ASSIGN(const auto found, find_pin(data.savepoint, options.pin));
                   ATOLL_TRY(
                       atolldb::unpin_snapshot(files, data.data_dir, data.savepoint, found.name));
                   return to_json(found);
                 }));
  return pin_of(unpinned);
}

Result<void> remove_snapshot(const ClusterChoice& choice, const SnapshotOptions& options) {
  const uint32_t id = options.id.value_or(0);
  const auto removed = change_any(
      choice, options, ControlOperation::snapshot_remove, Json{{"id", id}},
      [&](FileSystem& files, LogData& data) -> Result<Json> {
        ATOLL_ASSIGN(const auto done, atolldb::remove_snapshot(files, data.data_dir, data.savepoint,
                                                               data.directories, {}, id));
        return Json{{"id", id}, {"files", done.size()}};
      });
  if (!removed) return std::unexpected(removed.error());
  show(options, *removed,
       "snapshot " + id_text(*removed) +
           " removed: " + std::to_string(removed->value("files", uint64_t{0})) + " files");
  return {};
}

}  // namespace atolldb::cli
