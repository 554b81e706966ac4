#include "engine/recovery/retention.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/stored_checkpoints.h"
#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/recovery/salvage.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

bool are_intact(const std::array<SavepointSlot, 2>& slots) {
  return slots[0].savepoint && slots[1].savepoint;
}

/// Returns the members of a savepoint that determine which files are needed.
auto needs(const Savepoint& savepoint) {
  return std::tie(savepoint.snapshot, savepoint.snapshot_epoch, savepoint.covered_incarnation,
                  savepoint.pinned, savepoint.kept, savepoint.largest_snapshot);
}

bool is_listed(const Savepoint& savepoint, const LogFilePlace& place) {
  return std::ranges::any_of(savepoint.incarnations, [&](const Incarnation& incarnation) {
    if (incarnation.number != place.name.incarnation) return false;
    return std::ranges::any_of(incarnation.loggers, [&](const LoggerPlace& logger) {
      return logger.node == place.node && logger.logger == place.name.logger &&
             logger.directory == place.directory;
    });
  });
}

bool is_same_stream(const LogFilePlace& a, const LogFilePlace& b) {
  return a.name.incarnation == b.name.incarnation && a.name.logger == b.name.logger &&
         a.node == b.node && a.directory == b.directory;
}

bool must_stay(const KeepLog& keep_log, const LogFilePlace& place) {
  if (fault::delete_unarchived_log) return false;
  return keep_log && keep_log(place);
}

/// Adds the deletable files at the beginning of a listed stream. It searches for the last file
/// whose header says that all earlier files end at `covered` or before, and adds these earlier
/// files. So the newest file with a header is always kept, and so is every file from the first one
/// on that `keep_log` keeps (R72).
Result<void> add_covered_files(FileSystem& file_system, const ClusterUuid& own, uint64_t covered,
                               std::span<const LogFilePlace> stream, const KeepLog& keep_log,
                               std::vector<std::string>& paths) {
  CHECK(!stream.empty());
  size_t kept = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    if (i != 0 && must_stay(keep_log, stream[i - 1])) break;
    ATOLL_ASSIGN(auto begin, begin_of(file_system, stream[i]));
    if (!begin || begin->cluster_uuid != own) break;
    // A header with such epochs was written before R38 was implemented, so earlier files are kept.
    if (begin->last_epoch_before < begin->closed_epoch) break;
    if (begin->last_epoch_before > covered) break;
    kept = i;
  }
  for (const LogFilePlace& place : stream.first(kept)) paths.push_back(path_of(place));
  CHECK(kept < stream.size());
  if (kept == 0) return {};
  // From now on the stream begins with the first file that is kept. That file is synced, because
  // its header, which was read, must survive a power cut.
  const std::string path = path_of(stream[kept]);
  ATOLL_ASSIGN(auto file, file_system.open(path));
  ATOLL_TRY(file->sync());
  return file_system.sync_directory(path.substr(0, path.rfind('/')));
}

/// Adds all files of a stream that neither slot lists. A file without a header (created before its
/// first block was written) does not name its cluster. So the files with headers are removed last.
/// The whole stream stays if `keep_log` keeps a file with a header (R72).
Result<void> add_whole_stream(FileSystem& file_system, const ClusterUuid& own,
                              std::span<const LogFilePlace> stream, const KeepLog& keep_log,
                              std::vector<std::string>& paths) {
  CHECK(!stream.empty());
  std::vector<std::string> with_header;
  std::vector<std::string> without_header;
  for (const LogFilePlace& place : stream) {
    ATOLL_ASSIGN(auto begin, begin_of(file_system, place));
    if (begin && begin->cluster_uuid != own) return {};
    if (begin && must_stay(keep_log, place)) return {};
    (begin ? with_header : without_header).push_back(path_of(place));
  }
  if (with_header.empty()) return {};
  paths.insert(paths.end(), without_header.begin(), without_header.end());
  paths.insert(paths.end(), with_header.begin(), with_header.end());
  return {};
}

/// Ids of all needed snapshots, and the paths of their metadata and of all files with their pages.
struct Kept {
  std::set<uint32_t> ids;
  std::set<std::string> paths;
};

Result<Kept> find_kept(FileSystem& file_system, const RetentionView& view) {
  CHECK(are_intact(view.slots));
  Kept kept;
  kept.ids = view.in_use;
  for (const SavepointSlot& slot : view.slots) {
    kept.ids.insert(slot.savepoint->snapshot);
    for (const PinnedSnapshot& pin : slot.savepoint->pinned) kept.ids.insert(pin.id);
    for (const KeptSnapshot& older : slot.savepoint->kept) kept.ids.insert(older.id);
  }
  kept.ids.erase(0);
  for (const uint32_t id : kept.ids) {
    ATOLL_ASSIGN(auto metadata, read_snapshot_metadata(file_system, view.data_dir, id));
    kept.paths.insert(snapshot_metadata_path(view.data_dir, id));
    for (const SnapshotFilePlace& file : metadata.files) {
      kept.paths.insert(snapshot_file_path(file.directory, file.node, file.snapshot));
    }
  }
  CHECK(kept.paths.size() >= kept.ids.size());
  return kept;
}

/// Returns the checkpoints that a slot names as newest, or that a pin keeps.
std::set<uint64_t> needed_checkpoints(const std::array<SavepointSlot, 2>& slots) {
  CHECK(are_intact(slots));
  std::set<uint64_t> ids;
  for (const SavepointSlot& slot : slots) {
    ids.insert(slot.savepoint->snapshot);
    for (const PinnedSnapshot& pin : slot.savepoint->pinned) ids.insert(pin.id);
  }
  return ids;
}

/// Returns whether a file of a checkpoint is not needed, judged by its name.
bool is_unneeded_checkpoint(const Savepoint& savepoint, uint64_t id) {
  if (savepoint.scheme != DurabilityScheme::silor) return false;
  if (id == savepoint.snapshot || id > savepoint.largest_snapshot) return false;
  return std::ranges::find(savepoint.pinned, id, &PinnedSnapshot::id) == savepoint.pinned.end();
}

/// Stops the process if the savepoint needs one of the files, judged by the name alone.
void check_unneeded(const std::string& data_dir, const Savepoint& savepoint,
                    const std::set<uint32_t>& in_use, const std::vector<std::string>& paths) {
  CHECK(std::set<std::string_view>(paths.begin(), paths.end()).size() == paths.size());
  for (const std::string& path : paths) {
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    if (const std::optional<LogFileName> log = parse_log_file_name(name)) {
      const auto listed =
          std::ranges::find(savepoint.incarnations, log->incarnation, &Incarnation::number);
      CHECK(log->incarnation <= savepoint.covered_incarnation ||
            listed != savepoint.incarnations.end());
      continue;
    }
    if (const auto checkpoint = parse_stored_checkpoint_name(name)) {
      CHECK(is_unneeded_checkpoint(savepoint, checkpoint->checkpoint));
      continue;
    }
    const std::optional<SnapshotFileName> file = parse_snapshot_file_name(name);
    CHECK(file && file->snapshot <= savepoint.largest_snapshot);
    const uint32_t id = file->snapshot;
    if (path != snapshot_metadata_path(data_dir, id)) continue;
    CHECK(id != savepoint.snapshot && !in_use.contains(id));
    CHECK(std::ranges::find(savepoint.kept, id, &KeptSnapshot::id) == savepoint.kept.end());
    CHECK(std::ranges::find(savepoint.pinned, id, &PinnedSnapshot::id) == savepoint.pinned.end());
  }
}

/// Removes files one after the other, each durably before the next, so that no stream gets a gap.
Result<void> remove_in_order(FileSystem& file_system, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    CHECK(path.contains('/'));
    ATOLL_TRY(file_system.remove(path));
    ATOLL_TRY(file_system.sync_directory(path.substr(0, path.rfind('/'))));
  }
  return {};
}

/// Returns an error if the metadata of the newest snapshot or checkpoint cannot be read. The logs
/// that it covers may then be the only copy of their records.
Result<void> refuse_unreadable_newest(FileSystem& file_system, const std::string& data_dir,
                                      const Savepoint& savepoint) {
  if (savepoint.snapshot == 0) return {};
  const auto refuse = [](const Error& error, std::string_view what) {
    return make_error(
        error.code, fmt::format("{}: the newest {} cannot be read, so no log and no {} is deleted "
                                "until a newer one is complete",
                                error.message, what, what));
  };
  if (savepoint.scheme == DurabilityScheme::silor) {
    const auto checkpoint = read_checkpoint_metadata(file_system, data_dir, savepoint.snapshot);
    if (!checkpoint) return refuse(checkpoint.error(), "checkpoint");
    return {};
  }
  const auto metadata = read_snapshot_metadata(file_system, data_dir, savepoint.snapshot);
  if (!metadata) return refuse(metadata.error(), "snapshot");
  return {};
}

/// Writes the savepoint, at most twice, until both slots agree with `savepoint` on the needed
/// files. Returns the slots.
Result<std::array<SavepointSlot, 2>> equal_slots(FileSystem& file_system,
                                                 const std::string& data_dir,
                                                 Savepoint& savepoint) {
  CHECK(savepoint.generation != 0);
  for (int writes = 0;; ++writes) {
    ATOLL_ASSIGN(auto slots, read_savepoint_slots(file_system, savepoint_path(data_dir)));
    const bool are_equal = std::ranges::all_of(slots, [&](const SavepointSlot& slot) {
      return slot.savepoint && needs(*slot.savepoint) == needs(savepoint);
    });
    if (are_equal || writes == 2) return slots;
    ATOLL_TRY(write_savepoint(file_system, data_dir, savepoint));
  }
}

/// Returns ok if snapshot `id` may be removed, or an error that says why its files, `own`, must be
/// kept.
Result<void> refuse_removal(FileSystem& file_system, const RetentionView& view,
                            const Savepoint& savepoint, uint32_t id,
                            const std::set<std::string>& own) {
  const auto refuse = [&](const std::string& why) -> Result<void> {
    return make_error(ExitCode::failed, fmt::format("snapshot {}: {}", id, why));
  };
  if (own.empty() || id > savepoint.largest_snapshot) {
    return refuse("does not exist: `atoll snapshot ls` lists the snapshots");
  }
  if (id == savepoint.snapshot) {
    return refuse("is the newest one, which the next start needs: take another snapshot first");
  }
  if (std::ranges::find(savepoint.kept, id, &KeptSnapshot::id) != savepoint.kept.end()) {
    return refuse(
        "is kept for starts that cannot use a newer one: take newer ones, or lower snapshot.keep");
  }
  for (const PinnedSnapshot& pin : savepoint.pinned) {
    if (pin.id != id) continue;
    return refuse(
        fmt::format("is pinned as {}: remove the pin with `atoll snapshot unpin`", pin.name));
  }
  if (view.in_use.contains(id)) {
    return refuse(
        "is in use by the running cluster: try again after the next snapshot, or offline");
  }
  if (!are_intact(view.slots))
    return refuse("must stay while a slot of the savepoint is damaged: start the cluster");
  ATOLL_ASSIGN(auto kept, find_kept(file_system, view));
  for (const uint32_t other : kept.ids) {
    ATOLL_ASSIGN(auto metadata, read_snapshot_metadata(file_system, view.data_dir, other));
    const bool refers = std::ranges::any_of(
        metadata.files, [&](const SnapshotFilePlace& file) { return file.snapshot == id; });
    if (refers)
      return refuse(fmt::format("snapshot {} refers to pages of it: it must stay", other));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> deletable_logs(FileSystem& file_system,
                                                const RetentionView& view) {
  std::vector<std::string> paths;
  if (!are_intact(view.slots)) return paths;
  const Savepoint& first = *view.slots[0].savepoint;
  const Savepoint& second = *view.slots[1].savepoint;
  // The log after the oldest kept snapshot is needed (R55).
  const bool forgets_kept = fault::forget_kept_log;
  const uint64_t covered_epoch = forgets_kept
                                     ? std::min(first.snapshot_epoch, second.snapshot_epoch)
                                     : std::min(first.oldest_epoch(), second.oldest_epoch());
  const uint64_t covered = std::min(first.covered_incarnation, second.covered_incarnation);
  ATOLL_ASSIGN(auto files, log_files_in(file_system, view.directories));
  // Sorts by directory before ordinal, because streams in different directories may have the same
  // name and interleaved ordinals.
  std::ranges::sort(files, {}, [](const LogFilePlace& place) {
    return std::tuple(place.name.incarnation, place.node, place.name.logger,
                      std::string_view(place.directory), place.name.ordinal);
  });
  for (std::span<const LogFilePlace> rest(files); !rest.empty();) {
    const LogFilePlace& place = rest.front();
    const auto end = std::ranges::find_if_not(
        rest, [&](const LogFilePlace& other) { return is_same_stream(place, other); });
    const auto stream = rest.first(static_cast<size_t>(end - rest.begin()));
    rest = rest.subspan(stream.size());
    if (is_listed(first, place) && is_listed(second, place)) {
      ATOLL_TRY(add_covered_files(file_system, first.cluster_uuid, covered_epoch, stream,
                                  view.keep_log, paths));
    } else if (place.name.incarnation <= covered) {
      // The list of a savepoint has no covered incarnations.
      CHECK(!is_listed(first, place) && !is_listed(second, place));
      ATOLL_TRY(add_whole_stream(file_system, first.cluster_uuid, stream, view.keep_log, paths));
    }
  }
  return paths;
}

Result<std::vector<std::string>> deletable_snapshots(FileSystem& file_system,
                                                     const RetentionView& view) {
  std::vector<std::string> paths;
  if (!are_intact(view.slots)) return paths;
  ATOLL_ASSIGN(auto kept, find_kept(file_system, view));
  ATOLL_ASSIGN(auto files, snapshot_files_in(file_system, view.data_dir, view.directories));
  const uint32_t largest = std::min(view.slots[0].savepoint->largest_snapshot,
                                    view.slots[1].savepoint->largest_snapshot);
  std::vector<std::string> pages;
  for (const StoredSnapshotFile& file : files) {
    if (kept.paths.contains(file.path) || file.snapshot > largest) continue;
    ATOLL_ASSIGN(const bool foreign,
                 is_foreign(file_system, file, view.slots[0].savepoint->cluster_uuid));
    if (foreign) continue;
    (file.kind == StoredSnapshotKind::pages ? pages : paths).push_back(file.path);
  }
  paths.insert(paths.end(), pages.begin(), pages.end());
  return paths;
}

Result<std::vector<std::string>> deletable_checkpoints(FileSystem& file_system,
                                                       const RetentionView& view) {
  std::vector<std::string> paths;
  if (!are_intact(view.slots)) return paths;
  const std::set<uint64_t> needed = needed_checkpoints(view.slots);
  const uint64_t largest = std::min(view.slots[0].savepoint->largest_snapshot,
                                    view.slots[1].savepoint->largest_snapshot);
  ATOLL_ASSIGN(const auto files, checkpoint_files_in(file_system, view.data_dir, view.directories));
  for (const StoredCheckpointFile& file : files) {
    if (needed.contains(file.checkpoint) || file.checkpoint > largest) continue;
    ATOLL_ASSIGN(const bool foreign,
                 is_foreign(file_system, file, view.slots[0].savepoint->cluster_uuid));
    if (!foreign) paths.push_back(file.path);
  }
  return paths;
}

Result<std::vector<std::string>> delete_unneeded(FileSystem& file_system,
                                                 const std::string& data_dir, Savepoint& savepoint,
                                                 const std::set<std::string>& directories,
                                                 const std::set<uint32_t>& in_use,
                                                 std::optional<uint32_t> aside,
                                                 const KeepLog& keep_log) {
  // This check comes before the slots become equal, because the older slot may name a snapshot that
  // can be read.
  ATOLL_TRY(refuse_unreadable_newest(file_system, data_dir, savepoint));
  ATOLL_ASSIGN(auto slots, equal_slots(file_system, data_dir, savepoint));
  const RetentionView view = {data_dir, directories, std::move(slots), in_use,
                              aside ? KeepLog() : keep_log};
  auto snapshots = savepoint.scheme == DurabilityScheme::silor
                       ? deletable_checkpoints(file_system, view)
                       : deletable_snapshots(file_system, view);
  ATOLL_ASSIGN(auto paths, deletable_logs(file_system, view));
  if (snapshots) paths.insert(paths.begin(), snapshots->begin(), snapshots->end());
  check_unneeded(data_dir, savepoint, in_use, paths);
  ATOLL_TRY(aside ? move_aside(file_system, paths, *aside) : remove_in_order(file_system, paths));
  // If the metadata of a pinned snapshot is damaged, the files that it needs are unknown. So the
  // files of all snapshots are kept, but deletable logs are deleted.
  if (!snapshots) return snapshots;
  return paths;
}

Result<std::vector<std::string>> remove_snapshot(FileSystem& file_system,
                                                 const std::string& data_dir, Savepoint& savepoint,
                                                 const std::set<std::string>& directories,
                                                 const std::set<uint32_t>& in_use, uint32_t id) {
  ATOLL_ASSIGN(auto slots, equal_slots(file_system, data_dir, savepoint));
  const RetentionView view = {data_dir, directories, std::move(slots), in_use, {}};
  ATOLL_ASSIGN(auto files, snapshot_files_in(file_system, data_dir, directories));
  std::set<std::string> own;
  for (const StoredSnapshotFile& file : files) {
    if (file.snapshot == id) own.insert(file.path);
  }
  ATOLL_TRY(refuse_removal(file_system, view, savepoint, id, own));
  ATOLL_ASSIGN(auto paths, deletable_snapshots(file_system, view));
  std::erase_if(paths, [&](const std::string& path) { return !own.contains(path); });
  check_unneeded(data_dir, savepoint, in_use, paths);
  ATOLL_TRY(remove_in_order(file_system, paths));
  return paths;
}

}  // namespace atolldb
