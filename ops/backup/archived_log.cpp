#include "ops/backup/archived_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/log/log_files.h"
#include "ops/backup/restored_state.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Log files of one stream in the backup, by ordinal.
using SavedFiles = std::map<uint32_t, BackupFile>;
/// Incarnation, node, logger.
using StreamId = std::tuple<uint64_t, uint32_t, uint32_t>;

/// How far the log files of one stream reach without a gap.
struct StreamEnd {
  uint64_t reach_epoch = 0;
  std::string next;  // name of the first file that is missing
};

class Extension {
 public:
  Extension(FileSystem& file_system, const std::string& folder, const BackupManifest& manifest,
            const std::string& archive, const ArchiveContent& content)
      : files_(file_system), folder_(folder), archive_(archive), content_(content) {
    result_.manifest = manifest;
  }

  Result<ExtendedBackup> run() {
    for (const auto step : {&Extension::check_identity, &Extension::read_backup,
                            &Extension::add_ddl, &Extension::add_times, &Extension::add_log}) {
      ATOLL_TRY((this->*step)());
    }
    CHECK(result_.manifest.durable_epoch >= result_.manifest.oldest_epoch);
    return std::move(result_);
  }

 private:
  Result<void> check_identity() {
    const BackupManifest& manifest = result_.manifest;
    const ArchiveIdentity& identity = content_.identity;
    if (identity.cluster_uuid == manifest.cluster_uuid && identity.data_id == manifest.data_id) {
      return {};
    }
    return make_error(
        ExitCode::failed,
        fmt::format("{}: is the archive of other data ({}) than the backup {} ({}): choose the "
                    "archive of the cluster that was backed up",
                    archive_, identity.data_id, manifest.id, manifest.data_id));
  }

  Result<void> read_backup() {
    ATOLL_ASSIGN(result_.savepoint, savepoint_of_backup(files_, folder_));
    for (const BackupFile& file : result_.manifest.files) {
      if (file.kind != BackupFileKind::log) continue;
      const auto name = parse_archived_log_name(file.path);
      if (!name) continue;  // no log file name: a manifest may list any name
      saved_[{name->log.incarnation, name->node, name->log.logger}][name->log.ordinal] = file;
    }
    return {};
  }

  Result<void> add_ddl() {
    const Savepoint& savepoint = result_.savepoint;
    ATOLL_ASSIGN(auto ddl,
                 read_ddl_log(files_, folder_, savepoint.cluster_uuid, savepoint.ddl_records));
    const size_t both = std::min(ddl.records.size(), content_.ddl.size());
    if (!std::equal(ddl.records.begin(), ddl.records.begin() + static_cast<ptrdiff_t>(both),
                    content_.ddl.begin())) {
      return make_error(
          ExitCode::corruption,
          fmt::format("{}: its DDL records differ from those of the backup {}: one of them is of "
                      "another history: use another backup",
                      archive_, result_.manifest.id));
    }
    result_.ddl = ddl.records.size() > content_.ddl.size() ? std::move(ddl.records) : content_.ddl;
    return {};
  }

  Result<void> add_times() {
    ATOLL_ASSIGN(auto times, read_epoch_times(files_, folder_, result_.savepoint.cluster_uuid));
    std::map<uint64_t, uint64_t> by_epoch;
    for (const std::vector<EpochTime>* source : {&std::as_const(times), &content_.times}) {
      for (const EpochTime& time : *source) by_epoch[time.epoch] = time.unix_ms;
    }
    for (const auto& [epoch, unix_ms] : by_epoch) result_.times.push_back({epoch, unix_ms});
    return {};
  }

  /// Adds the archived incarnations in order, up to the first gap.
  Result<void> add_log() {
    Savepoint& savepoint = result_.savepoint;
    uint64_t covered = result_.manifest.durable_epoch;
    uint64_t history = history_of_backup();
    result_.end = content_.damage.empty() ? archive_ + ": has no later log" : content_.damage;
    for (const auto& [number, archived] : content_.incarnations) {
      const auto listed = std::ranges::find(savepoint.incarnations, number, &Incarnation::number);
      const bool is_listed = listed != savepoint.incarnations.end();
      // The backup has the whole log of every incarnation except its last one.
      if (is_listed && listed + 1 != savepoint.incarnations.end()) continue;
      if (!is_listed && number <= result_.manifest.incarnation) continue;
      if (!is_listed && archived.history != history) {
        result_.end = fmt::format(
            "{}: incarnation {} began with a salvage, to which no earlier "
            "log leads: use a backup that was taken after it",
            archive_, number);
        break;
      }
      history = archived.history;
      if (!is_listed && archived.base_epoch > covered) {
        result_.end = fmt::format(
            "{}: the log of the epochs {} to {} is missing: it was written "
            "before incarnation {}, and not archived",
            archive_, covered + 1, archived.base_epoch, number);
        break;
      }
      Incarnation extended = is_listed ? *listed : begin_incarnation(archived);
      ATOLL_ASSIGN(const StreamEnd end, add_incarnation(archived, extended));
      if (*extended.cut_epoch >= extended.start_epoch) {
        if (is_listed) {
          *listed = extended;
        } else {
          savepoint.incarnations.push_back(extended);
        }
      }
      covered = std::max(covered, *extended.cut_epoch);
      savepoint.largest_incarnation = std::max(savepoint.largest_incarnation, number);
      const bool is_complete =
          archived.cut_epoch.has_value() && *extended.cut_epoch >= *archived.cut_epoch;
      if (!is_complete) {
        if (content_.damage.empty()) {
          result_.end = fmt::format("{}/{}: is missing", archive_, end.next);
        }
        break;
      }
    }
    savepoint.largest_epoch = std::max(savepoint.largest_epoch, covered);
    result_.manifest.durable_epoch = covered;
    std::ranges::sort(result_.manifest.files, {}, &BackupFile::path);
    return {};
  }

  /// Returns the history number (see ArchivedIncarnation) of the last incarnation in the backup. If
  /// the archive does not know that incarnation, takes the last archived one before it, or else the
  /// first one.
  uint64_t history_of_backup() const {
    if (content_.incarnations.empty()) return 0;
    const auto after = content_.incarnations.upper_bound(result_.manifest.incarnation);
    const auto known = after == content_.incarnations.begin() ? after : std::prev(after);
    return known->second.history;
  }

  Incarnation begin_incarnation(const ArchivedIncarnation& archived) const {
    Incarnation begun = {archived.number, archived.start_epoch, archived.start_epoch - 1, {}};
    for (const LoggerName& name : archived.loggers) {
      begun.loggers.push_back({name.node, name.logger, folder_});
    }
    return begun;
  }

  /// Adds the archived files of all loggers of the incarnation. Raises its cut to the epoch that
  /// all these streams reach. Returns the end of the stream that reaches least.
  Result<StreamEnd> add_incarnation(const ArchivedIncarnation& archived, Incarnation& extended) {
    CHECK(extended.cut_epoch.has_value());
    const uint64_t before = *extended.cut_epoch;
    StreamEnd least = {archived.cut_epoch.value_or(UINT64_MAX), ""};
    for (const LoggerPlace& place : extended.loggers) {
      ATOLL_ASSIGN(StreamEnd end, add_stream(archived.number, place, before));
      if (end.reach_epoch < least.reach_epoch) least = std::move(end);
    }
    if (least.reach_epoch == UINT64_MAX) least.reach_epoch = before;  // without loggers
    extended.cut_epoch = std::max(before, least.reach_epoch);
    return least;
  }

  /// `saved_cut`: the cut of the incarnation in the backup, or its start epoch - 1.
  Result<StreamEnd> add_stream(uint64_t incarnation, const LoggerPlace& place, uint64_t saved_cut) {
    const StreamId id = {incarnation, place.node, place.logger};
    const SavedFiles& saved = saved_[id];
    StreamEnd end = {saved_cut, ""};
    LogFileName name = {incarnation, place.logger, saved.empty() ? 0 : saved.begin()->first};
    for (;; ++name.ordinal) {
      end.next = archived_log_name(place.node, name);
      const auto own = saved.find(name.ordinal);
      const bool is_saved = own != saved.end();
      const auto archived = content_.files.find(end.next);
      const bool has_entry = archived != content_.files.end();
      // A final file of the backup equals the archived file, and its checksum is in the manifest.
      // So the restore takes it from the backup.
      if (is_saved && own->second.is_final) {
        if (has_entry) end.reach_epoch = std::max(end.reach_epoch, archived->second.reach_epoch);
        continue;
      }
      bool is_there = false;
      if (has_entry) {
        ATOLL_ASSIGN(is_there, files_.exists(path_in(archive_, end.next)));
      }
      if (!is_there) return end;  // a copy in the backup reaches only the backup's cut
      take(archived->second, is_saved ? 0 : end.reach_epoch);
      end.reach_epoch = std::max(end.reach_epoch, archived->second.reach_epoch);
    }
  }

  /// Lets the restore copy the file from the archive.
  void take(const ArchivedFile& file, uint64_t after_epoch) {
    const BackupFile entry = {file.name, BackupFileKind::log, file.bytes, file.crc32c, true};
    const auto own = std::ranges::find(result_.manifest.files, file.name, &BackupFile::path);
    if (own == result_.manifest.files.end()) {
      result_.manifest.files.push_back(entry);
    } else {
      *own = entry;
    }
    result_.logs[file.name] = {path_in(archive_, file.name), after_epoch};
  }

  FileSystem& files_;
  const std::string folder_;
  const std::string archive_;
  const ArchiveContent& content_;
  std::map<StreamId, SavedFiles> saved_;
  ExtendedBackup result_;
};

}  // namespace

Result<ExtendedBackup> extend_backup(FileSystem& file_system, const std::string& folder,
                                     const BackupManifest& manifest, const std::string& archive,
                                     const ArchiveContent& content) {
  return Extension(file_system, folder, manifest, archive, content).run();
}

}  // namespace atolldb
