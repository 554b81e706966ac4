// `atoll snapshot verify`: checks metadata, files and every page of snapshots, and walks all their
// storages.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/log/ddl_log.h"
#include "ops/cli/snapshot_data.h"
#include "ops/cli/terminal.h"
#include "ops/verify/live_page_check.h"
#include "ops/verify/snapshot_walk.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kPagesAtOnce = 256;

struct Verified {
  uint32_t id = 0;
  uint64_t epoch = 0;
  uint64_t files = 0;
  uint64_t pages = 0;  // intact pages, including page 0 of each file
  std::vector<Error> problems;
  std::vector<UnreadablePage> unreadable;  // ranges of keys that cannot be read
};

bool is_kept(const Savepoint& savepoint, uint32_t id) {
  return id == savepoint.snapshot ||
         std::ranges::any_of(savepoint.kept,
                             [&](const KeptSnapshot& kept) { return kept.id == id; }) ||
         std::ranges::any_of(savepoint.pinned,
                             [&](const PinnedSnapshot& pin) { return pin.id == id; });
}

/// Checks a file up to its first defect.
Result<void> verify_pages(const SnapshotFiles& files, const SnapshotFilePlace& place,
                          IoBuffer& buffer, Verified& verified) {
  uint64_t& pages = verified.pages;
  ++pages;  // page 0, the header, was checked when the file was opened
  for (uint64_t page = 1; page < place.page_count;) {
    const auto count =
        static_cast<uint32_t>(std::min<uint64_t>(kPagesAtOnce, place.page_count - page));
    const auto first =
        SnapshotPointer::make(place.snapshot, place.node, static_cast<uint32_t>(page));
    ATOLL_TRY(files.read_run(first, count, buffer.bytes().data()));
    page += count;
    pages += count;
  }
  return {};
}

/// Checks that the root is a page of the storage, in a complete file.
Result<void> verify_root(const SnapshotFiles& files, const SnapshotStorage& storage,
                         const std::string& metadata_path, IoBuffer& buffer) {
  if (storage.root.is_null()) return {};
  auto* page = reinterpret_cast<PageHeader*>(buffer.bytes().data());
  ATOLL_TRY(files.read(storage.root, page));
  if (page->storage_id == storage.id) return {};
  return make_error(ExitCode::corruption,
                    fmt::format("{}: the root of storage {} ({}), page {} of node {} of snapshot "
                                "{}, is a page of storage {}: restore a backup",
                                metadata_path, storage.id, storage.name, storage.root.page(),
                                storage.root.node(), storage.root.snapshot(), page->storage_id));
}

/// Walks all storages. Finds the ranges of keys that damaged pages and stand-ins make unreadable,
/// and compares the live pages of the other storages with their counts (R67).
Result<void> walk_storages(FileSystem& file_system, const LogData& data,
                           const SnapshotMetadata& metadata, Verified& verified) {
  const ClusterUuid& uuid = data.savepoint.cluster_uuid;
  SnapshotFiles files(file_system, uuid);
  ATOLL_TRY(files.open_readable(metadata.files));
  std::map<uint32_t, DdlRecord> created;
  if (const auto ddl = read_ddl_log(file_system, data.data_dir, uuid)) {
    for (const DdlRecord& record : ddl->records) created.try_emplace(record.storage_id, record);
  }
  for (const SnapshotStorage& storage : metadata.storages) {
    if (storage.root.is_null()) continue;
    const DdlRecord& ddl = created[storage.id];
    // Without a DDL record of the array, the layout of its pages is unknown.
    if (storage.type == StorageType::array && ddl.record_count == 0) continue;
    const auto walked = walk_snapshot(
        files,
        {storage.id, storage.type, static_cast<uint32_t>(ddl.payload_bytes), ddl.record_count,
         storage.root},
        metadata.epoch, [](const WalkedRecord&) { return Result<void>(); },
        [&](const UnreadablePage& page) { verified.unreadable.push_back(page); });
    if (walked) {
      const bool is_whole = std::ranges::none_of(
          verified.unreadable,
          [&](const UnreadablePage& page) { return page.storage == storage.id; });
      const auto counted =
          is_whole ? check_live_pages(metadata, storage, walked->live) : Result<void>();
      if (!counted) verified.problems.push_back(counted.error());
      continue;
    }
    if (walked.error().code != ExitCode::corruption) return std::unexpected(walked.error());
    verified.unreadable.push_back(
        {storage.id, storage.root, 0, "what follows", walked.error().message});
  }
  return {};
}

/// Returns the findings, which include corruption, or an error for any other problem.
Result<Verified> verify(FileSystem& file_system, const LogData& data, uint32_t id) {
  Verified verified;
  verified.id = id;
  auto metadata = read_snapshot_metadata(file_system, data.data_dir, id);
  Result<void> problem;
  const auto note = [&](const Error& error) {
    if (error.code != ExitCode::corruption && problem) problem = std::unexpected(error);
    verified.problems.push_back(error);
  };
  if (!metadata) {
    note(metadata.error());
  } else {
    verified.epoch = metadata->epoch;
    SnapshotFiles files(file_system, data.savepoint.cluster_uuid);
    IoBuffer buffer(kPagesAtOnce * kPageBytes);
    std::set<std::pair<uint32_t, uint32_t>> intact;  // intact files, by snapshot and node
    for (const SnapshotFilePlace& place : metadata->files) {
      ++verified.files;
      Result<void> read = files.open({place});
      if (read) read = verify_pages(files, place, buffer, verified);
      if (read) {
        intact.insert({place.snapshot, place.node});
      } else {
        note(read.error());
      }
    }
    const std::string path = snapshot_metadata_path(data.data_dir, id);
    for (const SnapshotStorage& storage : metadata->storages) {
      if (!intact.contains({storage.root.snapshot(), storage.root.node()})) continue;
      const Result<void> root = verify_root(files, storage, path, buffer);
      if (!root) note(root.error());
    }
    if (problem) problem = walk_storages(file_system, data, *metadata, verified);
    if (verified.problems.empty() && !verified.unreadable.empty()) {
      note({ExitCode::corruption,
            fmt::format("{}: {} ranges of keys cannot be read: restore the files that are named "
                        "below, or give the ranges up with `atoll up --salvage`",
                        path, verified.unreadable.size())});
    }
  }
  if (!problem) return std::unexpected(problem.error());
  return verified;
}

void print_text(const Verified& verified) {
  std::printf("snapshot %u, epoch %llu: %s files, %s pages: %s\n", verified.id,
              static_cast<unsigned long long>(verified.epoch), format_count(verified.files).c_str(),
              format_count(verified.pages).c_str(),
              verified.problems.empty() ? paint(Colour::green, "intact").c_str()
                                        : paint(Colour::red, "corrupt").c_str());
  for (const Error& problem : verified.problems) {
    std::printf("  %s\n", printable(problem.message).c_str());
  }
  for (const UnreadablePage& page : verified.unreadable) {
    std::printf("  storage %u: %s: %s\n", page.storage, printable(page.range).c_str(),
                printable(page.reason).c_str());
  }
}

Json to_json(const Verified& verified) {
  Json problems = Json::array();
  for (const Error& problem : verified.problems) problems.push_back(problem.message);
  Json unreadable = Json::array();
  for (const UnreadablePage& page : verified.unreadable) {
    unreadable.push_back(
        {{"storage", page.storage}, {"range", page.range}, {"reason", page.reason}});
  }
  return {{"id", verified.id},
          {"epoch", verified.epoch},
          {"files", verified.files},
          {"pages", verified.pages},
          {"intact", verified.problems.empty()},
          {"problems", problems},
          {"unreadable", unreadable}};
}

/// Returns the snapshots to verify.
Result<std::vector<uint32_t>> chosen(FileSystem& file_system, const LogData& data,
                                     const SnapshotOptions& options) {
  if (options.id) {
    ATOLL_ASSIGN(auto exists,
                 file_system.exists(snapshot_metadata_path(data.data_dir, *options.id)));
    if (exists || is_kept(data.savepoint, *options.id)) return std::vector{*options.id};
    return make_error(ExitCode::failed, fmt::format("snapshot {}: not found in {}: `atoll snapshot "
                                                    "ls` lists all snapshots",
                                                    *options.id, data.data_dir));
  }
  std::set<uint32_t> ids;
  if (data.savepoint.snapshot != 0) ids.insert(data.savepoint.snapshot);
  for (const PinnedSnapshot& pin : data.savepoint.pinned) ids.insert(pin.id);
  for (const KeptSnapshot& kept : data.savepoint.kept) ids.insert(kept.id);
  return std::vector<uint32_t>(ids.begin(), ids.end());
}

/// Returns whether the snapshot no longer exists. A live cluster may have replaced and deleted it
/// during the check.
bool is_gone(FileSystem& file_system, const ClusterChoice& choice, const SnapshotOptions& options,
             uint32_t id) {
  const Result<LogData> now = find_log_data(file_system, choice, options);
  return now && !is_kept(now->savepoint, id);
}

}  // namespace

Result<void> verify_snapshots(const ClusterChoice& choice, const SnapshotOptions& options) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  ATOLL_TRY(refuse_checkpoints(data));
  ATOLL_ASSIGN(const auto ids, chosen(files, data, options));
  Json whole = {{"schema_version", 1}, {"data_dir", data.data_dir}, {"snapshots", Json::array()}};
  Result<void> verdict;
  for (const uint32_t id : ids) {
    const Result<Verified> verified = verify(files, data, id);
    const bool has_problem = !verified || !verified->problems.empty();
    if (has_problem && !options.id && is_gone(files, choice, options, id)) continue;
    if (!verified) return std::unexpected(verified.error());
    if (!options.json) print_text(*verified);
    whole["snapshots"].push_back(to_json(*verified));
    if (has_problem && verdict) verdict = std::unexpected(verified->problems.front());
  }
  whole["intact"] = verdict.has_value();
  whole["problem"] = verdict ? "" : verdict.error().message;
  if (options.json) {
    std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (ids.empty()) {
    std::printf("no snapshot yet\n");
  }
  return verdict;
}

}  // namespace atolldb::cli
