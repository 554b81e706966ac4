#include "engine/recovery/log_start.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint_snapshots.h"
#include "engine/recovery/checkpoint_start.h"
#include "engine/recovery/discard_data.h"
#include "engine/recovery/uncreated_storages.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

ClusterUuid random_uuid() {
  ClusterUuid uuid;
  CHECK(getrandom(uuid.data(), uuid.size(), 0) == static_cast<ssize_t>(uuid.size()));
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 9562: version 4, random
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

// A start-up reads from the device, not from the page cache (R53). After a failed sync the kernel
// may keep pages that the device has refused, and marks them as clean. A start-up that trusts such
// pages builds on data that is lost when the kernel evicts them.

/// Drops the cached pages of savepoint, DDL log and snapshot metadata.
Result<void> forget_cached_state(FileSystem& file_system, const std::string& data_dir) {
  if (fault::read_through_cache) return {};
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return {};
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  for (const std::string& name : names) {
    ATOLL_TRY(file_system.forget_cached(path_in(directory, name)));
  }
  return {};
}

/// Drops the cached pages of all log files in the directories.
Result<void> forget_cached_logs(FileSystem& file_system, const std::set<std::string>& directories,
                                const RunTasks& run) {
  if (fault::read_through_cache) return {};
  ATOLL_ASSIGN(const auto files, log_files_in(file_system, directories));
  return try_tasks(run, files.size(),
                   [&](size_t i) { return file_system.forget_cached(path_of(files[i])); });
}

/// Returns true if a stream of a finished incarnation has records in (covered epoch, cut]. Reads no
/// further than needed to decide this.
Result<bool> holds_records(FileSystem& file_system, const LogStream& stream, uint64_t cut) {
  ATOLL_ASSIGN(auto reader, LogReader::open(file_system, stream, CoveredBlocks::skip));
  CHECK(cut > stream.covered_epoch);
  while (reader.closed_epoch() < cut) {
    ATOLL_ASSIGN(auto block, reader.next());
    if (block == nullptr) {
      IncarnationScan scan;
      scan.corruption = reader.end();
      scan.known_durable_epoch = cut;
      return std::unexpected(scan.corruption_error());
    }
    const LogBlockHeader& header = block->header;
    if (header.type == LogBlockType::records && header.epoch > stream.covered_epoch) {
      return header.epoch <= cut;
    }
  }
  return false;
}

/// Cuts the first damaged incarnation at the last epoch that all its logs have intact, and omits
/// all later incarnations.
Result<void> omit_damaged(FileSystem& file_system, LogStart& start, const RunTasks& run) {
  Savepoint& savepoint = start.savepoint;
  bool is_cut_off = false;
  for (Incarnation& incarnation : savepoint.incarnations) {
    const uint64_t none = incarnation.start_epoch - 1;
    const bool is_needed =
        !incarnation.cut_epoch || *incarnation.cut_epoch > std::max(none, savepoint.snapshot_epoch);
    if (!is_needed) continue;
    ATOLL_ASSIGN(auto scan,
                 scan_incarnation(file_system, savepoint, incarnation, CoveredBlocks::skip, run));
    savepoint.largest_epoch =
        std::max({savepoint.largest_epoch, scan.largest_epoch, incarnation.start_epoch});
    if (is_cut_off) {
      start.left_out.push_back(fmt::format(
          "incarnation {}: all commits from epoch {} on, because earlier commits are lost",
          incarnation.number, incarnation.start_epoch));
      incarnation.cut_epoch = none;
      continue;
    }
    if (!scan.corruption) continue;
    // An epoch that every log has intact counts, even after the known durable epoch.
    uint64_t cut = incarnation.cut_epoch.value_or(kMaxEpoch);
    for (const LogScan& log : scan.logs) cut = std::min(cut, log.durable_epoch);
    cut = std::max(cut, none);
    CHECK(!incarnation.cut_epoch || cut <= *incarnation.cut_epoch);
    scan.cut_epoch = cut;
    ATOLL_TRY(refuse_uncreated(scan, start.ddl));
    start.left_out.push_back(
        fmt::format("incarnation {}: all commits after epoch {} (epoch {} was durable): {}: offset "
                    "{}: {}",
                    incarnation.number, cut, scan.known_durable_epoch, scan.corruption->file,
                    scan.corruption->offset, scan.corruption->reason));
    if (!incarnation.cut_epoch) {
      scan.corruption.reset();
      start.last.push_back(std::move(scan));
    }
    incarnation.cut_epoch = cut;
    savepoint.durable_epoch = 0;
    is_cut_off = true;
  }
  return {};
}

/// Determines the cut of the last incarnation if it has none yet.
Result<void> cut_last(FileSystem& file_system, LogStart& start, const RunTasks& run) {
  Savepoint& savepoint = start.savepoint;
  const Incarnation* last = savepoint.uncut();
  if (last == nullptr) return {};
  ATOLL_ASSIGN(auto scan,
               scan_incarnation(file_system, savepoint, *last, CoveredBlocks::skip, run));
  if (scan.corruption) return std::unexpected(scan.corruption_error());
  ATOLL_TRY(refuse_uncreated(scan, start.ddl));
  CHECK(scan.cut_epoch + 1 >= last->start_epoch);
  savepoint.incarnations.back().cut_epoch = scan.cut_epoch;
  savepoint.largest_epoch =
      std::max({savepoint.largest_epoch, scan.largest_epoch, last->start_epoch});
  savepoint.durable_epoch = 0;
  start.last.push_back(std::move(scan));
  return {};
}

/// Removes from the list the first incarnations that no recovery needs: they have no commits after
/// the snapshot. Without this function they would fill the list, and their files the disk. The
/// numbers of failed start-ups, whose files have only headers, become covered, too.
void remove_covered_incarnations(LogStart& start) {
  Savepoint& savepoint = start.savepoint;
  // If there are streams to read, recovery makes a snapshot of them, and store_snapshot removes the
  // incarnations. With checkpoints a recovery stores nothing.
  const bool makes_snapshot = savepoint.scheme == DurabilityScheme::gleaned;
  if (makes_snapshot && !start.streams_to_read.empty()) return;
  const uint64_t covered_before = savepoint.covered_incarnation;
  std::vector<Incarnation>& listed = savepoint.incarnations;
  if (listed.size() >= kMaxListedIncarnations) {
    savepoint.kept.clear();
    remove_backup_pins(savepoint);
  }
  const bool keeps_log = !savepoint.kept.empty() || savepoint.has_backup_pins();
  // Keeps the incarnations that the recovery or an older snapshot needs, and all later ones (R55,
  // R65).
  const auto first = std::ranges::find_if(listed, [&](const Incarnation& incarnation) {
    if (keeps_log && *incarnation.cut_epoch > savepoint.oldest_epoch()) return true;
    return std::ranges::any_of(start.streams_to_read, [&](const PlannedStream& planned) {
      return planned.stream.incarnation == incarnation.number;
    });
  });
  if (first == listed.end()) {
    listed.clear();
    savepoint.covered_incarnation = start.incarnation - 1;
  } else if (first != listed.begin()) {
    savepoint.covered_incarnation = std::prev(first)->number;
    listed.erase(listed.begin(), first);
  }
  CHECK(savepoint.covered_incarnation >= covered_before);
}

/// Checks metadata and files of the snapshot that the savepoint names, and stores the metadata in
/// `start`. With Damage::left_out, files that cannot be read are only listed.
Result<void> examine_newest(FileSystem& file_system, const std::string& data_dir, LogStart& start,
                            Damage damage) {
  const Savepoint& savepoint = start.savepoint;
  CHECK(savepoint.snapshot != 0);
  ATOLL_ASSIGN(auto metadata, read_snapshot_metadata(file_system, data_dir, savepoint.snapshot));
  if (metadata.epoch != savepoint.snapshot_epoch ||
      metadata.cluster_uuid != savepoint.cluster_uuid) {
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: is of {}, but the savepoint names snapshot {} as of epoch {}: restore a "
                    "backup, or start empty with `atoll up --discard-data`",
                    snapshot_metadata_path(data_dir, savepoint.snapshot),
                    metadata.cluster_uuid != savepoint.cluster_uuid
                        ? "another cluster"
                        : fmt::format("epoch {}", metadata.epoch),
                    savepoint.snapshot, savepoint.snapshot_epoch));
  }
  SnapshotFiles files(file_system, savepoint.cluster_uuid);
  ATOLL_ASSIGN(auto closed, files.open_readable(metadata.files));
  for (const Error& error : closed) {
    if (damage == Damage::refused) return std::unexpected(error);
    start.left_out.push_back(error.message);
  }
  start.snapshot = std::move(metadata);
  return {};
}

/// Checks that all log after the snapshot of `start` is intact.
Result<void> check_log(FileSystem& file_system, const LogStart& start, const RunTasks& run) {
  for (const Incarnation& incarnation : start.savepoint.incarnations) {
    if (incarnation.cut_epoch && *incarnation.cut_epoch <= start.savepoint.snapshot_epoch) continue;
    ATOLL_ASSIGN(auto scan, scan_incarnation(file_system, start.savepoint, incarnation,
                                             CoveredBlocks::skip, run));
    if (scan.corruption) return std::unexpected(scan.corruption_error());
    ATOLL_TRY(refuse_uncreated(scan, start.ddl));
  }
  return {};
}

/// Refuses a snapshot with a storage that no DDL record creates. That is damage of the DDL log,
/// which no older snapshot repairs (R52). examine_newest reports metadata that cannot be read.
Result<void> refuse_uncreated_in_snapshot(FileSystem& file_system, const std::string& data_dir,
                                          const LogStart& start) {
  const Savepoint& savepoint = start.savepoint;
  auto metadata = read_snapshot_metadata(file_system, data_dir, savepoint.snapshot);
  if (!metadata) return {};
  return refuse_uncreated_storages(metadata->storages, start.ddl,
                                   snapshot_metadata_path(data_dir, savepoint.snapshot));
}

/// Examines the newest snapshot. If it is damaged, uses the newest kept snapshot that is intact and
/// has an intact log after it. If there is none, returns the damage of the newest snapshot as an
/// error, or omits the damaged files with Damage::left_out.
Result<void> examine_snapshot(FileSystem& file_system, const std::string& data_dir, LogStart& start,
                              Damage damage, const RunTasks& run) {
  if (start.savepoint.snapshot == 0) return {};
  if (start.savepoint.scheme == DurabilityScheme::silor) {
    return examine_checkpoint(file_system, data_dir, start, run);
  }
  ATOLL_TRY(refuse_uncreated_in_snapshot(file_system, data_dir, start));
  auto newest = examine_newest(file_system, data_dir, start, Damage::refused);
  if (newest || newest.error().code != ExitCode::corruption) return newest;
  for (size_t older = start.savepoint.kept.size(); older-- > 0;) {
    LogStart other = start;
    other.savepoint.snapshot = start.savepoint.kept[older].id;
    other.savepoint.snapshot_epoch = start.savepoint.kept[older].epoch;
    other.savepoint.kept.resize(older);
    CHECK(other.savepoint.snapshot < start.savepoint.snapshot);
    // The newest snapshot has only durable epochs. So a log that ends before the epoch of that
    // snapshot is damaged (R30).
    if (other.savepoint.uncut() != nullptr) {
      other.savepoint.durable_epoch =
          std::max(other.savepoint.durable_epoch, start.savepoint.snapshot_epoch);
    }
    auto good = examine_newest(file_system, data_dir, other, Damage::refused);
    if (good) good = check_log(file_system, other, run);
    if (!good && good.error().code != ExitCode::corruption) return good;
    if (!good) continue;
    other.fallback = fmt::format(
        "snapshot {} is damaged: the start uses snapshot {} of epoch {} and the log after it, so "
        "no "
        "commit is lost: {}",
        start.savepoint.snapshot, other.savepoint.snapshot, other.savepoint.snapshot_epoch,
        newest.error().message);
    start = std::move(other);
    return {};
  }
  if (damage == Damage::refused) return newest;
  return examine_newest(file_system, data_dir, start, damage);
}

}  // namespace

Result<void> collect_streams(FileSystem& file_system, LogStart& start, const RunTasks& run) {
  const Savepoint& savepoint = start.savepoint;
  CHECK(savepoint.uncut() == nullptr);
  start.streams_to_read.clear();
  start.recovery_epoch = savepoint.snapshot_epoch;
  // The log of the epochs up to the end epoch was durable when the checkpoint was installed (R89).
  if (start.checkpoint) start.recovery_epoch = start.checkpoint->end_epoch;
  std::vector<PlannedStream> candidates;
  for (const Incarnation& incarnation : savepoint.incarnations) {
    const uint64_t cut = *incarnation.cut_epoch;
    start.recovery_epoch = std::max(start.recovery_epoch, cut);
    // The files of a covered incarnation may be in any state, because no reader needs them.
    if (cut < incarnation.start_epoch || cut <= savepoint.snapshot_epoch) continue;
    for (const LoggerPlace& place : incarnation.loggers) {
      candidates.push_back({stream_of(savepoint, incarnation, place), cut});
    }
  }
  std::vector<uint8_t> holds(candidates.size(), 0);  // each element is written by one task
  ATOLL_TRY(try_tasks(run, candidates.size(), [&](size_t i) -> Result<void> {
    ATOLL_ASSIGN(holds[i],
                 holds_records(file_system, candidates[i].stream, candidates[i].last_epoch));
    return {};
  }));
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (holds[i] != 0) start.streams_to_read.push_back(std::move(candidates[i]));
  }
  CHECK(start.streams_to_read.empty() || start.recovery_epoch > savepoint.snapshot_epoch);
  return {};
}

Result<void> refuse_unlisted(FileSystem& file_system, const Savepoint& savepoint,
                             const std::set<std::string>& directories) {
  ATOLL_ASSIGN(const auto files, log_files_in(file_system, directories));
  for (const LogFilePlace& place : files) {
    const bool is_listed =
        std::ranges::any_of(savepoint.incarnations, [&](const Incarnation& incarnation) {
          return incarnation.number == place.name.incarnation;
        });
    if (is_listed) continue;
    const bool is_covered = place.name.incarnation <= savepoint.covered_incarnation;
    // Without a savepoint the cluster that should own the files is unknown.
    if (savepoint.generation != 0) {
      ATOLL_ASSIGN(const bool foreign, is_foreign(file_system, place, savepoint.cluster_uuid));
      if (foreign) {
        return make_error(ExitCode::failed,
                          fmt::format("{}: is a log of another cluster: give this cluster its own "
                                      "directories, or move that cluster's files elsewhere",
                                      path_of(place)));
      }
    }
    if (is_covered) continue;  // deletable file, or left by a crash during deletion
    LogStream stream;
    stream.directory = place.directory;
    stream.node = static_cast<uint16_t>(place.node);
    stream.logger = static_cast<uint16_t>(place.name.logger);
    stream.incarnation = place.name.incarnation;
    ATOLL_ASSIGN(auto reader, LogReader::open(file_system, std::move(stream)));
    for (;;) {
      ATOLL_ASSIGN(const LogBlock* block, reader.next());
      if (block == nullptr) break;
      if (block->header.type == LogBlockType::file_header) continue;
      return make_error(ExitCode::corruption,
                        fmt::format("{}: offset {}: a block of incarnation {}, which no intact "
                                    "savepoint lists: the savepoint is damaged or missing: restore "
                                    "a backup, or start empty with `atoll up --discard-data`",
                                    reader.file(), reader.offset(), place.name.incarnation));
    }
  }
  return {};
}

std::set<std::string> log_directories(const Savepoint& savepoint, const std::string& data_dir,
                                      const std::vector<std::string>& configured) {
  std::set<std::string> all(configured.begin(), configured.end());
  all.insert(data_dir);
  for (const Incarnation& incarnation : savepoint.incarnations) {
    for (const LoggerPlace& place : incarnation.loggers) all.insert(place.directory);
  }
  return all;
}

Result<LogStart> examine(FileSystem& file_system, const std::string& data_dir,
                         const std::vector<std::string>& directories, Damage damage,
                         const RunTasks& run) {
  ATOLL_TRY(refuse_unfinished_discard(file_system, data_dir));
  LogStart start;
  ATOLL_TRY(forget_cached_state(file_system, data_dir));
  ATOLL_ASSIGN(auto read, read_savepoint(file_system, data_dir));
  if (read) {
    start.savepoint = read->savepoint;
    start.damaged_slot = read->damaged_slot;
  } else {
    start.is_new = true;
    start.savepoint.cluster_uuid = random_uuid();
  }
  Savepoint& savepoint = start.savepoint;
  const auto all = log_directories(savepoint, data_dir, directories);
  ATOLL_TRY(forget_cached_logs(file_system, all, run));
  ATOLL_TRY(refuse_unlisted(file_system, savepoint, all));
  ATOLL_ASSIGN(auto ddl,
               read_ddl_log(file_system, data_dir, savepoint.cluster_uuid, savepoint.ddl_records));
  if (start.is_new && (!ddl.records.empty() || !ddl.torn.empty())) {
    return make_error(ExitCode::corruption,
                      savepoint_path(data_dir) +
                          ": the file is missing, but the DDL log beside it holds records: restore "
                          "a backup, or start empty with `atoll up --discard-data`");
  }
  start.ddl = std::move(ddl.records);
  ATOLL_TRY(examine_snapshot(file_system, data_dir, start, damage, run));
  if (damage == Damage::left_out) {
    ATOLL_TRY(omit_damaged(file_system, start, run));
  }
  ATOLL_TRY(cut_last(file_system, start, run));
  ATOLL_TRY(refuse_cut_before_end(start, data_dir));
  ATOLL_TRY(collect_streams(file_system, start, run));
  for (const DdlRecord& record : start.ddl) {
    savepoint.largest_epoch = std::max(savepoint.largest_epoch, record.epoch);
  }
  start.incarnation = savepoint.largest_incarnation + 1;
  start.start_epoch = savepoint.largest_epoch + 1;
  if (start.start_epoch >= kMaxEpoch) {
    return make_error(ExitCode::resources,
                      fmt::format("{}: epoch {} would be the next, the largest is {}: start empty "
                                  "with `atoll up --discard-data`",
                                  data_dir, start.start_epoch, kMaxEpoch));
  }
  return start;
}

Result<void> store_cut(FileSystem& file_system, const std::string& data_dir, LogStart& start,
                       const std::function<Result<bool>()>& on_cut) {
  const auto sync = [&]() -> Result<void> {
    for (const IncarnationScan& scan : start.last) {
      for (const LogScan& log : scan.logs) {
        for (const LogFileScan& scanned : log.files) {
          ATOLL_ASSIGN(auto file, file_system.open(scanned.path));
          ATOLL_TRY(file->sync());
        }
        const std::string directory = node_directory(log.stream.directory, log.stream.node);
        ATOLL_TRY(file_system.sync_directory(directory));
      }
    }
    return {};
  };
  if (!fault::cut_before_sync) {
    ATOLL_TRY(sync());
  }
  CHECK(start.savepoint.uncut() == nullptr && start.last.size() <= 1);
  CHECK(start.incarnation >= start.savepoint.largest_incarnation);
  start.savepoint.largest_incarnation = start.incarnation;
  bool may_forget = true;
  if (on_cut) {
    ATOLL_TRY(write_savepoint(file_system, data_dir, start.savepoint));
    ATOLL_ASSIGN(may_forget, on_cut());
  }
  if (may_forget || fault::forget_unstored_log) remove_covered_incarnations(start);
  return write_savepoint(file_system, data_dir, start.savepoint);
}

Result<void> begin_incarnation(FileSystem& file_system, const std::string& data_dir,
                               LogStart& start, std::vector<LoggerPlace> loggers) {
  Savepoint next = start.savepoint;
  CHECK(next.largest_incarnation == start.incarnation && next.uncut() == nullptr);
  // No epoch is used twice (R32).
  CHECK(start.start_epoch > start.recovery_epoch && start.start_epoch > next.snapshot_epoch);
  next.largest_epoch = std::max(next.largest_epoch, start.start_epoch);
  next.incarnations.push_back({start.incarnation, start.start_epoch, {}, std::move(loggers)});
  for (const LoggerPlace& place : next.incarnations.back().loggers) {
    ATOLL_ASSIGN(auto reader,
                 LogReader::open(file_system, stream_of(next, next.incarnations.back(), place)));
    ATOLL_ASSIGN(auto header, reader.next());
    if (header == nullptr) {
      return make_error(
          ExitCode::durability,
          fmt::format("{}: offset {}: {}: logger {} of node {} has not begun", reader.end().file,
                      reader.end().offset, reader.end().reason, place.logger, place.node));
    }
    CHECK(header->header.type == LogBlockType::file_header);
    CHECK(header->header.incarnation == start.incarnation);
  }
  CHECK(next.uncut() != nullptr && next.uncut()->number == start.incarnation);
  ATOLL_TRY(write_savepoint(file_system, data_dir, next));
  start.savepoint = std::move(next);
  return {};
}

Result<void> store_durable_epoch(FileSystem& file_system, const std::string& data_dir,
                                 LogStart& start, uint64_t durable_epoch) {
  CHECK(start.savepoint.uncut() != nullptr);
  if (durable_epoch <= start.savepoint.durable_epoch) return {};
  CHECK(durable_epoch <= kMaxEpoch);
  start.savepoint.durable_epoch = durable_epoch;
  return write_savepoint(file_system, data_dir, start.savepoint);
}

}  // namespace atolldb
