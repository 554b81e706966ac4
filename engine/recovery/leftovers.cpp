#include "engine/recovery/leftovers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "engine/format/log_block.h"
#include "engine/gleaner/sorted_run.h"
#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

enum class LogContent : uint8_t { header_at_most, foreign, unknown };

/// Classifies a log file by its first two blocks. A failed start-up has written a header, perhaps a
/// torn one, or nothing.
Result<LogContent> content_of(FileSystem& file_system, const LogFilePlace& place,
                              const ClusterUuid& own) {
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(path_of(place)));
  IoBuffer buffer(2 * kLogBlockBytes);
  ATOLL_ASSIGN(const uint64_t count, file->read(0, buffer.bytes()));
  const auto is_zero = [](std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
  };
  const std::span<const std::byte> bytes = buffer.bytes().first(count);
  if (!is_zero(bytes.subspan(std::min<size_t>(bytes.size(), kLogBlockBytes)))) {
    return LogContent::unknown;
  }
  ATOLL_ASSIGN(const bool foreign, is_foreign(file_system, place, own));
  return foreign ? LogContent::foreign : LogContent::header_at_most;
}

Result<void> remove_logs(FileSystem& file_system, const std::string& data_dir,
                         const Savepoint& savepoint, const std::set<std::string>& directories,
                         uint64_t incarnation, const KeepLog& keep_log, RemovedLeftovers& result) {
  ATOLL_ASSIGN(auto slots, read_savepoint_slots(file_system, savepoint_path(data_dir)));
  // A damaged slot may have listed any incarnation, so no log is removed then.
  for (const SavepointSlot& slot : slots) {
    if (!slot.savepoint) return {};
  }
  const auto is_listed = [&](uint64_t number) {
    return std::ranges::any_of(slots, [&](const SavepointSlot& slot) {
      const auto& listed = slot.savepoint->incarnations;
      return std::ranges::find(listed, number, &Incarnation::number) != listed.end();
    });
  };
  ATOLL_ASSIGN(auto files, log_files_in(file_system, directories));
  for (const LogFilePlace& place : files) {
    if (place.name.incarnation >= incarnation || is_listed(place.name.incarnation)) continue;
    if (keep_log && keep_log(place)) continue;  // the archive does not have it yet (R72)
    ATOLL_ASSIGN(auto content, content_of(file_system, place, savepoint.cluster_uuid));
    const std::string path = path_of(place);
    if (content == LogContent::unknown) result.damaged_logs.push_back(path);
    if (content != LogContent::header_at_most) continue;
    // store_cut has written the caller's savepoint, so a slot lists each of its incarnations.
    CHECK(std::ranges::find(savepoint.incarnations, place.name.incarnation, &Incarnation::number) ==
          savepoint.incarnations.end());
    ATOLL_TRY(file_system.remove(path));
    result.removed.push_back(path);
  }
  return {};
}

/// Removes the sorted runs of all nodes that have files in the directories.
Result<void> remove_runs(FileSystem& file_system, const std::set<std::string>& directories,
                         RemovedLeftovers& result) {
  for (const std::string& directory : directories) {
    const auto remove = [&](uint32_t node, const std::string& folder) -> Result<void> {
      ATOLL_ASSIGN(const auto names, list_sorted_runs(file_system, directory, node));
      for (const std::string& name : names) {
        const std::string path = path_in(folder, name);
        CHECK(!parse_log_file_name(name) && !parse_snapshot_file_name(name));
        ATOLL_TRY(file_system.remove(path));
        result.removed.push_back(path);
      }
      return {};
    };
    ATOLL_TRY(for_each_node_folder(file_system, directory, remove));
  }
  return {};
}

Result<void> sync_directories(FileSystem& file_system, const std::vector<std::string>& paths) {
  std::set<std::string> directories;
  for (const std::string& path : paths) {
    CHECK(path.contains('/'));
    directories.insert(path.substr(0, path.rfind('/')));
  }
  for (const std::string& directory : directories) {
    ATOLL_TRY(file_system.sync_directory(directory));
  }
  return {};
}

}  // namespace

Result<RemovedLeftovers> remove_leftovers(FileSystem& file_system, const std::string& data_dir,
                                          Savepoint& savepoint,
                                          const std::set<std::string>& directories,
                                          uint64_t incarnation, const KeepLog& keep_log) {
  CHECK(savepoint.uncut() == nullptr && savepoint.largest_incarnation == incarnation);
  RemovedLeftovers result;
  if (fault::keep_leftovers) return result;
  // Removes runs and logs even if delete_unneeded cannot tell which snapshots are needed.
  auto unneeded =
      delete_unneeded(file_system, data_dir, savepoint, directories, {}, std::nullopt, keep_log);
  auto runs = remove_runs(file_system, directories, result);
  auto logs =
      remove_logs(file_system, data_dir, savepoint, directories, incarnation, keep_log, result);
  auto synced = sync_directories(file_system, result.removed);
  if (!unneeded) return std::unexpected(unneeded.error());
  for (const Result<void>& done : {runs, logs, synced}) ATOLL_TRY(done);
  result.removed.insert(result.removed.end(), unneeded->begin(), unneeded->end());
  return result;
}

}  // namespace atolldb
