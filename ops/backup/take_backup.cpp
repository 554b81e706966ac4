#include "ops/backup/take_backup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/format/snapshot_page.h"
#include "engine/log/ddl_log.h"
#include "engine/log/epoch_times.h"
#include "engine/log/log_files.h"
#include "engine/log/log_scan.h"
#include "engine/recovery/log_start.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "ops/backup/backup_copy.h"
#include "ops/backup/backup_folder.h"
#include "ops/backup/backup_time.h"
#include "ops/backup/source_state.h"
#include "ops/launcher/owner_file.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// A file of one logger's stream.
struct StreamFile {
  LogFilePlace place;
  std::optional<LogFileBegin> begin;  // no value: no header of this cluster
};

/// Returns whether a restore to an epoch after `epoch` reads the log of this incarnation (R32). The
/// log files of other incarnations may be in any state.
bool needs_log(const Incarnation& incarnation, uint64_t epoch) {
  if (!incarnation.cut_epoch) return true;
  return *incarnation.cut_epoch >= incarnation.start_epoch && *incarnation.cut_epoch > epoch;
}

/// Returns the index of the file at which the log after `epoch` begins. Uses the rule by which the
/// cluster deletes log files (engine/recovery/retention.cpp).
size_t first_after(const std::vector<StreamFile>& stream, uint64_t epoch) {
  size_t first = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    const auto& begin = stream[i].begin;
    const bool is_covered = begin && begin->last_epoch_before >= begin->closed_epoch &&
                            begin->last_epoch_before <= epoch;
    if (!is_covered) break;
    first = i;
  }
  CHECK(stream.empty() || first < stream.size());
  return first;
}

/// One backup. Its steps run in the order of `run`.
class BackupJob {
 public:
  BackupJob(FileSystem& file_system, const BackupRequest& request)
      : files_(file_system),
        request_(request),
        folder_(backup_path(request.directory, request.id)) {
    CHECK(is_backup_id(request.id));
    CHECK(request.older == 0 || request.older < request.newest);
  }

  Result<BackupManifest> run() {
    manifest_.id = request_.id;
    manifest_.cluster = request_.cluster;
    manifest_.started_ms = unix_ms_now();
    for (const auto step :
         {&BackupJob::read_source, &BackupJob::make_folders, &BackupJob::copy_snapshots,
          &BackupJob::copy_logs, &BackupJob::copy_rest, &BackupJob::write_state,
          &BackupJob::sync_folders, &BackupJob::check, &BackupJob::write_end}) {
      ATOLL_TRY((this->*step)());
    }
    return manifest_;
  }

 private:
  /// Returns a function that counts the parts of a snapshot file and checks its pages, as their
  /// readers do. `copy_snapshot` has checked page 0.
  OnPart counted_and_checked(const SnapshotFilePlace& place, const std::string& path) {
    return [path, self = SnapshotPointer::make(place.snapshot, place.node, 0).word(),
            count = report_.counted()](std::span<const std::byte> part) mutable -> Result<void> {
      for (size_t at = 0; at + kPageBytes <= part.size(); at += kPageBytes, ++self) {
        const auto& page = *reinterpret_cast<const PageHeader*>(part.data() + at);
        const uint64_t number = SnapshotPointer(self).page();
        if (number == 0 || (page.check == check_of(page) && page.self == self)) continue;
        return make_error(ExitCode::corruption,
                          fmt::format("{}: page {}: its checksum or its own pointer is wrong: the "
                                      "file is damaged: see `atoll snapshot damage`",
                                      path, number));
      }
      return count(part);
    };
  }

  Result<void> read_source() {
    ATOLL_TRY(report_.begin_step("reading the savepoint"));
    ATOLL_TRY(refuse_unfinished(files_, request_.data_dir));
    ATOLL_ASSIGN(const auto owner, read_owner(files_, request_.data_dir));
    if (!owner || !owner->is_data_dir) {
      return make_error(ExitCode::identity,
                        fmt::format("{}: is not the data directory of a cluster: choose another",
                                    owner_path(request_.data_dir)));
    }
    ATOLL_ASSIGN(state_, read_live_savepoint(files_, request_.data_dir));
    // The pins may have been given up before the savepoint was read.
    ATOLL_TRY(refuse_unkept(state_, request_.data_dir, request_.newest));
    ATOLL_TRY(refuse_unkept(state_, request_.data_dir, request_.older));
    manifest_.data_id = owner->id;
    manifest_.cluster_uuid = state_.cluster_uuid;
    manifest_.incarnation = state_.incarnations.empty() ? state_.covered_incarnation
                                                        : state_.incarnations.back().number;
    return {};
  }

  Result<void> make_folders() {
    ATOLL_TRY(files_.make_directory(folder_));
    return make_folder(coordinator_directory(folder_));
  }

  Result<void> make_folder(const std::string& path) {
    if (!folders_.insert(path).second) return {};
    return files_.make_directory(path);
  }

  /// Copies the chosen snapshots, and makes the savepoint name exactly these.
  Result<void> copy_snapshots() {
    // Commits up to this epoch are known to be durable (R30), whichever snapshots the backup
    // copies.
    known_durable_ = std::max(state_.durable_epoch, state_.snapshot_epoch);
    state_.pinned.clear();
    state_.kept.clear();
    state_.snapshot = 0;
    state_.snapshot_epoch = 0;
    if (request_.newest != 0) {
      ATOLL_ASSIGN(const uint64_t epoch, state_.scheme == DurabilityScheme::silor
                                             ? copy_checkpoint(request_.newest)
                                             : copy_snapshot(request_.newest));
      state_.snapshot = request_.newest;
      state_.snapshot_epoch = epoch;
    }
    if (request_.older != 0) {
      ATOLL_TRY(copy_older());
    }
    if (request_.newest != 0) {
      manifest_.snapshots.push_back({state_.snapshot, state_.snapshot_epoch});
    }
    oldest_epoch_ = state_.oldest_epoch();
    return {};
  }

  /// Copies the older snapshot, or leaves it out if it is damaged: the newest one suffices for
  /// later epochs. Files that were copied before the damage was found stay, and nothing refers to
  /// them.
  Result<void> copy_older() {
    const uint32_t id = request_.older;
    const Result<uint64_t> epoch = copy_snapshot(id);
    if (epoch && *epoch <= state_.snapshot_epoch) {
      state_.kept.push_back({id, *epoch});
      manifest_.snapshots.push_back({id, *epoch});
      return {};
    }
    if (!epoch && epoch.error().code != ExitCode::corruption) {
      return std::unexpected(epoch.error());
    }
    if (!request_.warn) return {};
    request_.warn(
        fmt::format("snapshot {} is skipped, so that only epochs from {} on can be restored: {}",
                    id, state_.snapshot_epoch,
                    epoch ? fmt::format("it is of epoch {}", *epoch) : epoch.error().message));
    return {};
  }

  /// Returns the epoch of the snapshot.
  Result<uint64_t> copy_snapshot(uint32_t id) {
    ATOLL_TRY(report_.begin_step(fmt::format("copying snapshot {}", id)));
    ATOLL_ASSIGN(auto metadata, read_snapshot_metadata(files_, request_.data_dir, id));
    if (metadata.cluster_uuid != state_.cluster_uuid) {
      return make_error(ExitCode::corruption,
                        fmt::format("{}: is of another cluster: restore the file",
                                    snapshot_metadata_path(request_.data_dir, id)));
    }
    // Checks the header and the size of each file before anything is copied.
    SnapshotFiles pages(files_, state_.cluster_uuid);
    ATOLL_TRY(pages.open(metadata.files));
    for (SnapshotFilePlace& place : metadata.files) {
      const std::string from = snapshot_file_path(place.directory, place.node, place.snapshot);
      place.directory = folder_;
      const std::string to = snapshot_file_path(folder_, place.node, place.snapshot);
      ATOLL_TRY(make_folder(to.substr(0, to.rfind('/'))));
      ATOLL_TRY(add_file(from, to, BackupFileKind::snapshot_pages, true,
                         counted_and_checked(place, from)));
    }
    ATOLL_TRY(write_snapshot_metadata(files_, folder_, metadata));
    ATOLL_TRY(add_written(snapshot_metadata_path(folder_, id), BackupFileKind::snapshot_metadata));
    return metadata.epoch;
  }

  /// Returns the epoch before the replay epoch of the checkpoint.
  Result<uint64_t> copy_checkpoint(uint32_t id) {
    ATOLL_TRY(report_.begin_step(fmt::format("copying checkpoint {}", id)));
    ATOLL_ASSIGN(auto metadata, read_checkpoint_metadata(files_, request_.data_dir, id));
    if (metadata.cluster_uuid != state_.cluster_uuid) {
      return make_error(ExitCode::corruption,
                        fmt::format("{}: is of another cluster: restore the file",
                                    checkpoint_metadata_path(request_.data_dir, id)));
    }
    for (CheckpointFileInfo& info : metadata.files) {
      const CheckpointFileName name = {metadata.id, info.writer, info.number};
      const std::string from = checkpoint_file_path(info.directory, info.node, name);
      info.directory = folder_;
      const std::string to = checkpoint_file_path(folder_, info.node, name);
      ATOLL_TRY(make_folder(to.substr(0, to.rfind('/'))));
      ATOLL_TRY(add_file(from, to, BackupFileKind::checkpoint_records, true, report_.counted()));
      ATOLL_TRY(check_records(metadata, static_cast<size_t>(&info - metadata.files.data()), from));
    }
    // The commits up to the end epoch were durable when the checkpoint was installed (R89).
    first_state_ = metadata.end_epoch;
    known_durable_ = std::max(known_durable_, metadata.end_epoch);
    ATOLL_TRY(install_checkpoint(files_, folder_, metadata, metadata.end_epoch));
    ATOLL_TRY(
        add_written(checkpoint_metadata_path(folder_, id), BackupFileKind::checkpoint_metadata));
    return metadata.replay_epoch - 1;
  }

  /// Checks all blocks of the copy of a file.
  Result<void> check_records(const CheckpointMetadata& metadata, size_t file,
                             const std::string& from) {
    const auto damaged = [&](const Error& error) {
      return make_error(error.code,
                        fmt::format("{}: its copy is damaged: {}", from, error.message));
    };
    auto reader = CheckpointReader::open(files_, metadata, file);
    if (!reader) return damaged(reader.error());
    for (;;) {
      const auto block = reader->next();
      if (!block) return damaged(block.error());
      if (*block == nullptr) return {};
    }
  }

  /// Copies the log after the oldest snapshot, and gives the last incarnation its cut.
  Result<void> copy_logs() {
    std::vector<Incarnation> needed;
    for (Incarnation& incarnation : state_.incarnations) {
      if (incarnation.cut_epoch && *incarnation.cut_epoch <= oldest_epoch_ && needed.empty()) {
        state_.covered_incarnation = incarnation.number;
        continue;
      }
      ATOLL_TRY(copy_incarnation(incarnation));
      needed.push_back(incarnation);
    }
    state_.incarnations = std::move(needed);
    CHECK(state_.uncut() == nullptr);
    manifest_.durable_epoch = std::max(state_.snapshot_epoch, first_state_);
    for (const Incarnation& incarnation : state_.incarnations) {
      manifest_.durable_epoch = std::max(manifest_.durable_epoch, *incarnation.cut_epoch);
    }
    manifest_.oldest_epoch = std::max(oldest_epoch_, first_state_);
    CHECK(manifest_.oldest_epoch <= manifest_.durable_epoch);
    state_.durable_epoch = 0;
    return {};
  }

  Result<void> copy_incarnation(Incarnation& incarnation) {
    if (!needs_log(incarnation, oldest_epoch_)) {
      for (LoggerPlace& place : incarnation.loggers) place.directory = folder_;
      return {};
    }
    const bool has_ended = incarnation.cut_epoch.has_value();
    uint64_t cut = has_ended ? *incarnation.cut_epoch : UINT64_MAX;
    ATOLL_ASSIGN(const uint64_t durable, needed_epoch_of(incarnation));
    state_.largest_epoch = std::max(state_.largest_epoch, incarnation.start_epoch);
    for (LoggerPlace& place : incarnation.loggers) {
      ATOLL_TRY(
          report_.begin_step(fmt::format("copying the log of incarnation {}, node {}, logger {}",
                                         incarnation.number, place.node, place.logger)));
      const std::string source = place.directory;
      ATOLL_TRY(copy_stream(incarnation.number, place, has_ended));
      place.directory = folder_;
      ATOLL_ASSIGN(const LogScan scan, scan_copy(incarnation, place));
      // The copy must have at least what was known to be durable before it began. It must also have
      // the first file, whose header was durable before the first commit (R28).
      const uint64_t needed = has_ended ? cut : std::max(known_durable_, durable);
      if (scan.durable_epoch < needed || scan.files.empty()) return lacks(scan, source, needed);
      known_durable_ = std::max(known_durable_, scan.largest_durable_epoch);
      state_.largest_epoch = std::max(state_.largest_epoch, scan.largest_epoch);
      if (!has_ended) cut = std::min(cut, scan.durable_epoch);
    }
    if (cut == UINT64_MAX) cut = incarnation.start_epoch - 1;  // without loggers
    CHECK(cut + 1 >= incarnation.start_epoch);
    incarnation.cut_epoch = cut;
    return {};
  }

  /// Returns the epoch that each log of the incarnation must reach. A damaged end of a log shows
  /// when another log names later epochs as durable (R30). So this function scans all logs of a
  /// stopped cluster before the first one is copied. The logs of a running cluster grow meanwhile,
  /// so the durable epoch that the cluster has reported counts.
  Result<uint64_t> needed_epoch_of(const Incarnation& incarnation) const {
    Savepoint source = state_;
    source.snapshot_epoch = oldest_epoch_;
    source.durable_epoch = known_durable_;
    return durable_epoch_of(files_, source, incarnation, request_.durable_epoch);
  }

  Result<LogScan> scan_copy(const Incarnation& incarnation, const LoggerPlace& place) {
    LogStream stream = stream_of(state_, incarnation, place);
    stream.covered_epoch = oldest_epoch_;
    return scan_log(files_, stream, {}, CoveredBlocks::skip);
  }

  static std::unexpected<Error> lacks(const LogScan& scan, const std::string& source,
                                      uint64_t needed) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: offset {}: {}, but epoch {} was durable: the log in {} is "
                                  "damaged: see `atoll wal verify`",
                                  scan.end.file, scan.end.offset, scan.end.reason, needed, source));
  }

  /// Lists the files of a stream. The list is made now, so that it is newer than every earlier
  /// copy. Skips files at the begin that the oldest snapshot covers, because the cluster may be
  /// deleting them.
  Result<std::vector<StreamFile>> files_of_stream(uint64_t incarnation, const LoggerPlace& place) {
    std::vector<StreamFile> stream;
    const std::string folder = node_directory(place.directory, place.node);
    ATOLL_ASSIGN(const bool exists, files_.exists(folder));
    if (!exists) return stream;
    ATOLL_ASSIGN(const auto names, files_.list(folder));
    for (const std::string& name : names) {
      const auto parsed = parse_log_file_name(name);
      if (!parsed || parsed->incarnation != incarnation || parsed->logger != place.logger) continue;
      StreamFile file = {{place.directory, place.node, *parsed}, {}};
      auto begin = begin_of(files_, file.place);
      if (!begin) {
        // The cluster may have deleted the file since it was listed. The later scan of the copy
        // finds a gap.
        ATOLL_ASSIGN(const bool is_there, files_.exists(path_of(file.place)));
        if (!is_there) continue;
        return std::unexpected(begin.error());
      }
      file.begin = *begin;
      if (file.begin && file.begin->cluster_uuid != state_.cluster_uuid) file.begin.reset();
      stream.push_back(std::move(file));
    }
    std::ranges::sort(stream, {}, [](const StreamFile& file) { return file.place.name.ordinal; });
    while (!stream.empty() && !stream.back().begin) stream.pop_back();  // has no header yet
    stream.erase(stream.begin(),
                 stream.begin() + static_cast<ptrdiff_t>(first_after(stream, oldest_epoch_)));
    return stream;
  }

  /// Copies the files of a stream. A file is final if the next file has its header, because the
  /// logger writes that header after the last block of the file. In an incarnation that has ended,
  /// all files are final (R29).
  Result<void> copy_stream(uint64_t incarnation, const LoggerPlace& place, bool has_ended) {
    ATOLL_ASSIGN(const auto stream, files_of_stream(incarnation, place));
    const std::string folder = node_directory(folder_, place.node);
    ATOLL_TRY(make_folder(folder));
    for (const StreamFile& file : stream) {
      const bool is_final = has_ended || &file != &stream.back();
      const std::string from = path_of(file.place);
      ATOLL_TRY(add_file(from, path_in(folder, to_string(file.place.name)), BackupFileKind::log,
                         is_final, report_.counted()));
      if (is_final) continue;
      // The copy may hold blocks that the logger has not synced yet. After this sync, all commits
      // in the backup are durable in the cluster, too.
      ATOLL_TRY(sync_file(from));
    }
    return {};
  }

  Result<void> sync_file(const std::string& path) {
    ATOLL_ASSIGN(const auto file, files_.open(path));
    return file->sync();
  }

  /// Copies the DDL log and the times of epochs. Runs after the copies of the logs, so that the DDL
  /// log has the creation of every storage in them (R34).
  Result<void> copy_rest() {
    ATOLL_TRY(report_.begin_step("copying the DDL log"));
    const std::string from = coordinator_directory(request_.data_dir);
    const std::string to = coordinator_directory(folder_);
    ATOLL_ASSIGN(const auto names, files_.list(from));
    for (const std::string& name : names) {
      if (!parse_ddl_file_name(name)) continue;
      ATOLL_TRY(add_file(path_in(from, name), path_in(to, name), BackupFileKind::ddl_log, false,
                         report_.counted()));
    }
    const std::string times = epoch_times_path(request_.data_dir);
    ATOLL_ASSIGN(const bool has_times, files_.exists(times));
    if (!has_times) return {};
    return add_file(times, epoch_times_path(folder_), BackupFileKind::epoch_times, false,
                    report_.counted());
  }

  /// Writes the savepoint of the backup into both slots. All its incarnations have a cut.
  Result<void> write_state() {
    ATOLL_TRY(report_.begin_step("writing the savepoint"));
    ATOLL_ASSIGN(const auto ddl,
                 read_ddl_log(files_, folder_, state_.cluster_uuid, state_.ddl_records));
    state_.ddl_records = ddl.records.size();
    state_.largest_epoch = std::max(state_.largest_epoch, manifest_.durable_epoch);
    state_.generation = 0;
    for (int slot = 0; slot < 2; ++slot) {
      ATOLL_TRY(write_savepoint(files_, folder_, state_));
    }
    return add_written(savepoint_path(folder_), BackupFileKind::savepoint);
  }

  Result<void> sync_folders() {
    for (const std::string& folder : folders_) {
      ATOLL_TRY(files_.sync_directory(folder));
    }
    return files_.sync_directory(folder_);
  }

  Result<void> check() {
    ATOLL_TRY(report_.begin_step("checking the backup"));
    return check_restorable(files_, folder_);
  }

  Result<void> write_end() {
    std::ranges::sort(manifest_.files, {}, &BackupFile::path);
    manifest_.finished_ms = unix_ms_now();
    ATOLL_TRY(write_manifest(files_, folder_, manifest_));
    return files_.sync_directory(request_.directory);
  }

  std::string relative(const std::string& path) const {
    CHECK(path.starts_with(folder_ + "/"));
    return path.substr(folder_.size() + 1);
  }

  void add_entry(const std::string& to, BackupFileKind kind, const FileSum& sum, bool is_final) {
    manifest_.files.push_back({relative(to), kind, sum.bytes, sum.crc32c, is_final});
    report_.add_file(sum.bytes);
  }

  /// Adds a file that this job has written durably.
  Result<void> add_written(const std::string& path, BackupFileKind kind) {
    ATOLL_ASSIGN(const FileSum sum, sum_of_file(files_, path, {}));
    add_entry(path, kind, sum, false);
    return {};
  }

  /// Links or copies a file of the cluster to a new path of the backup.
  Result<void> add_file(const std::string& from, const std::string& to, BackupFileKind kind,
                        bool is_final, const OnPart& on_part) {
    if (!paths_.insert(to).second) return {};  // a page file that both snapshots use
    // Copies and checksums must read what the device has, not what the page cache has (R53).
    ATOLL_TRY(files_.forget_cached(from));
    if (is_final) {
      ATOLL_ASSIGN(const bool is_reused, link_previous(from, to, kind));
      if (is_reused) return {};
      // A log file may have blocks that its logger has not synced yet.
      if (kind == BackupFileKind::log) {
        ATOLL_TRY(sync_file(from));
      }
      ATOLL_ASSIGN(const bool is_linked, files_.link(from, to));
      if (is_linked) {
        ATOLL_ASSIGN(const FileSum sum, sum_of_file(files_, to, on_part));
        manifest_.linked_bytes += sum.bytes;
        add_entry(to, kind, sum, true);
        return {};
      }
    }
    ATOLL_ASSIGN(const FileSum sum, copy_file(files_, from, to, on_part));
    add_entry(to, kind, sum, is_final);
    return {};
  }

  /// Links the same file of the previous backup. Returns false if there is none.
  Result<bool> link_previous(const std::string& from, const std::string& to, BackupFileKind kind) {
    if (!request_.previous || !request_.previous->is_of_same_data(manifest_)) return false;
    const BackupFile* before = request_.previous->find(relative(to));
    if (before == nullptr || !before->is_final || before->kind != kind) return false;
    ATOLL_ASSIGN(const auto source, files_.open_for_reading(from));
    ATOLL_ASSIGN(const uint64_t bytes, source->size());
    if (bytes != before->bytes) return false;
    const std::string path =
        path_in(backup_path(request_.directory, request_.previous->id), before->path);
    ATOLL_ASSIGN(const bool is_there, files_.exists(path));
    if (!is_there) return false;
    // A volume that was set back to an older state has files of the same names and ids with other
    // content.
    ATOLL_ASSIGN(const bool is_same, have_equal_ends(files_, from, path, bytes));
    if (!is_same) return false;
    ATOLL_ASSIGN(const bool is_linked, files_.link(path, to));
    if (!is_linked) return false;
    manifest_.linked_bytes += bytes;
    add_entry(to, kind, {before->bytes, before->crc32c}, true);
    return true;
  }

  FileSystem& files_;
  const BackupRequest& request_;
  const std::string folder_;
  ProgressReport report_{request_.on_progress};
  BackupManifest manifest_;
  Savepoint state_;                // that of the cluster; the steps turn it into that of the backup
  uint64_t oldest_epoch_ = 0;      // epoch of the oldest snapshot that the backup has
  uint64_t first_state_ = 0;       // end epoch of the checkpoint: no earlier state can be restored
  uint64_t known_durable_ = 0;     // largest epoch that any file read so far names as durable
  std::set<std::string> folders_;  // folders that were made in folder_
  std::set<std::string> paths_;    // paths of the added files, in folder_
};

/// Checks all log after the newest snapshot of the savepoint.
Result<void> check_logs(FileSystem& file_system, const Savepoint& savepoint,
                        const std::vector<DdlRecord>& ddl) {
  for (const Incarnation& incarnation : savepoint.incarnations) {
    if (!needs_log(incarnation, savepoint.snapshot_epoch)) continue;
    ATOLL_ASSIGN(const auto scan,
                 scan_incarnation(file_system, savepoint, incarnation, CoveredBlocks::skip));
    if (scan.corruption) return std::unexpected(scan.corruption_error());
    ATOLL_TRY(refuse_uncreated(scan, ddl));
  }
  return {};
}

/// Checks the log after an older snapshot, and that snapshot's files.
Result<void> check_older(FileSystem& file_system, const std::string& folder,
                         const Savepoint& savepoint, const KeptSnapshot& kept,
                         const std::vector<DdlRecord>& ddl) {
  ATOLL_ASSIGN(const auto metadata, read_snapshot_metadata(file_system, folder, kept.id));
  if (metadata.epoch != kept.epoch) {
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: is of epoch {}, the savepoint says {}: use another backup",
                    snapshot_metadata_path(folder, kept.id), metadata.epoch, kept.epoch));
  }
  SnapshotFiles files(file_system, savepoint.cluster_uuid);
  ATOLL_TRY(files.open(metadata.files));
  Savepoint older = savepoint;
  older.snapshot = kept.id;
  older.snapshot_epoch = kept.epoch;
  older.kept.clear();
  return check_logs(file_system, older, ddl);
}

}  // namespace

Result<Savepoint> read_live_savepoint(FileSystem& file_system, const std::string& data_dir) {
  auto read = read_savepoint(file_system, data_dir);
  for (int again = 0; again < 3 && (!read || (*read && !(*read)->damaged_slot.empty())); ++again) {
    read = read_savepoint(file_system, data_dir);
  }
  if (!read) return std::unexpected(read.error());
  if (!*read) {
    return make_error(ExitCode::failed,
                      fmt::format("{}: the file is missing: the cluster keeps no data there: "
                                  "choose another directory",
                                  savepoint_path(data_dir)));
  }
  return std::move((*read)->savepoint);
}

Result<void> check_restorable(FileSystem& file_system, const std::string& folder) {
  ATOLL_ASSIGN(const LogStart start, examine(file_system, folder, {}));
  if (start.is_new) {
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: the file is missing: use another backup", savepoint_path(folder)));
  }
  if (!start.fallback.empty()) return make_error(ExitCode::corruption, start.fallback);
  if (!start.damaged_slot.empty()) {
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: {}: use another backup", savepoint_path(folder), start.damaged_slot));
  }
  if (start.savepoint.uncut() != nullptr || !start.last.empty()) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: is no savepoint of a backup: an incarnation has no cut",
                                  savepoint_path(folder)));
  }
  // Reads the savepoint as it is on disk, because the start-up check above drops what it does not
  // need.
  ATOLL_ASSIGN(const auto read, read_savepoint(file_system, folder));
  if (!read) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: the file was removed meanwhile: use another backup",
                                  savepoint_path(folder)));
  }
  for (const KeptSnapshot& kept : read->savepoint.kept) {
    ATOLL_TRY(check_older(file_system, folder, read->savepoint, kept, start.ddl));
  }
  // The check of an older snapshot above has covered the log after the newest one.
  if (!read->savepoint.kept.empty()) return {};
  return check_logs(file_system, read->savepoint, start.ddl);
}

Result<BackupManifest> take_backup(FileSystem& file_system, const BackupRequest& request) {
  return BackupJob(file_system, request).run();
}

}  // namespace atolldb
