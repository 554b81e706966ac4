#include "coordinator/archive/log_archiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/archive/archive_content.h"
#include "engine/hooks/mutants.h"
#include "engine/log/ddl_log.h"
#include "engine/log/epoch_times.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

uint64_t unix_seconds() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

bool is_running(const ArchivedIncarnation& incarnation) {
  return !incarnation.cut_epoch.has_value();
}

/// Returns whether the next record must have this incarnation.
bool is_news(const PendingIncarnation& pending) {
  return !pending.is_recorded || (pending.incarnation.cut_epoch && !pending.is_cut_recorded);
}

/// Returns the state of a new archive of the same data, which has no file yet.
ArchiveState begin_archive(const ArchiveState& before, const std::string& target) {
  ArchiveState next;
  next.identity = before.identity;
  next.identity.id = new_archive_id();
  next.target = target;
  next.begun = before.begun;
  next.take_incarnations(before);
  CHECK(next.records == 0 && next.streams.empty());
  return next;
}

std::unexpected<Error> other_data(const std::string& directory, const ArchiveIdentity& found,
                                  const ArchiveIdentity& own) {
  return make_error(
      ExitCode::identity,
      fmt::format("{}: is the archive of other data: of cluster {} (data {}), not of {} (data {}): "
                  "set archive.directory to another directory",
                  directory, found.cluster, found.data_id, own.cluster, own.data_id));
}

std::unexpected<Error> missing_identity(const std::string& directory) {
  return make_error(
      ExitCode::failed,
      fmt::format("{}: {} is missing, but an archive of these data has begun there: mount the "
                  "device of the archive, or set archive.directory to a new directory and take a "
                  "backup",
                  directory, kIdentityName));
}

}  // namespace

LogArchiver::LogArchiver(ArchiveSource source, std::unique_ptr<FileSystem> archive_files,
                         const Config::Archive& archive, Logger logger)
    : source_(std::move(source)),
      archive_files_(std::move(archive_files)),
      retry_(archive.retry.get()),
      logger_(std::move(logger)),
      target_(make_archive_target(archive, *archive_files_, [this] { return is_cancelled(); })) {
  CHECK(!source_.directories.empty());
  CHECK(target_->name() == archive_target_name(archive));
}

void LogArchiver::set_times(std::chrono::milliseconds retry, std::chrono::milliseconds timeout) {
  retry_.set(retry);
  target_->set_timeout(timeout);
  changed_.notify_all();  // a wait for the old time ends
}

void LogArchiver::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void LogArchiver::stop() {
  {
    const std::lock_guard guard(mutex_);
    ends_.store(true, std::memory_order_relaxed);  // relaxed: mutex_ orders it for `run`
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LogArchiver::run() {
  name_thread("archiver");
  while (!is_cancelled()) {
    const Result<void> worked = work();
    if (is_cancelled()) return;
    report(worked);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, worked ? kArchivePeriod : retry_.get(),
                      [this] { return is_cancelled(); });
  }
}

Result<void> LogArchiver::await_examined(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return first_answer_.has_value(); });
  if (!first_answer_ || *first_answer_) return {};
  if (first_answer_->error().code != ExitCode::identity) return {};
  return *first_answer_;
}

/// Logs the first error of a series, then other errors at most once per kArchiveErrorPause, then
/// the end of the series.
void LogArchiver::report(const Result<void>& worked) {
  const std::string error = worked ? "" : worked.error().message;
  const bool failed_before = metrics_.failing_since_s.load(std::memory_order_relaxed) != 0;
  if (!worked) {
    metrics_.failures.add();
    if (!failed_before) {
      metrics_.failing_since_s.store(unix_seconds(), std::memory_order_relaxed);
    }
  } else if (failed_before) {
    metrics_.failing_since_s.store(0, std::memory_order_relaxed);
    logger_->info("the archive works again");
  }
  const auto now = Clock::now();
  const bool is_due = now - logged_at_ >= kArchiveErrorPause && error != logged_error_;
  if (!worked && (!failed_before || is_due)) {
    logger_->error("the log is kept, because it cannot be archived: {}", error);
    logged_error_ = error;
    logged_at_ = now;
  }
  const std::lock_guard guard(mutex_);
  error_ = error;
}

Result<void> LogArchiver::work() {
  ATOLL_ASSIGN(auto waiting, find_waiting());
  publish_waiting(waiting);
  // Checks the archive each time before it stores something, because the device of the archive may
  // have been unmounted.
  if (!is_examined_ || !waiting.empty()) {
    ATOLL_TRY(examine());
  }
  ATOLL_TRY(source_.progress.store_pending());
  ATOLL_TRY(finish_record());
  ATOLL_ASSIGN(waiting, find_waiting());
  for (std::span<const Waiting> rest(waiting); !rest.empty();) {
    if (is_cancelled()) return {};
    ATOLL_TRY(archive_file(rest.front()));
    rest = rest.subspan(1);
    publish_waiting(rest);
  }
  if (has_news()) {
    ATOLL_TRY(examine());
    ATOLL_ASSIGN(const ArchiveRecord rest, next_record());
    ATOLL_TRY(store_record(rest));
  }
  ATOLL_TRY(forget_complete());
  ATOLL_ASSIGN(waiting, find_waiting());
  publish_waiting(waiting);
  return {};
}

Result<void> LogArchiver::examine() {
  const Result<void> examined = examine_target();
  is_examined_ = examined.has_value();
  {
    const std::lock_guard guard(mutex_);
    if (!first_answer_) first_answer_ = examined;
  }
  changed_.notify_all();
  return examined;
}

Result<std::vector<LogArchiver::Waiting>> LogArchiver::find_waiting() {
  const ArchiveState state = source_.progress.state();
  ATOLL_ASSIGN(const auto files, log_files_in(source_.files, source_.directories));
  std::vector<Waiting> waiting;
  // The files are sorted by incarnation, node, logger and ordinal, so the files of a stream are
  // adjacent.
  for (std::span<const LogFilePlace> rest(files); !rest.empty();) {
    const LogFilePlace& place = rest.front();
    const auto end = std::ranges::find_if_not(rest, [&](const LogFilePlace& other) {
      return other.node == place.node && other.name.incarnation == place.name.incarnation &&
             other.name.logger == place.name.logger;
    });
    const auto stream = rest.first(static_cast<size_t>(end - rest.begin()));
    rest = rest.subspan(stream.size());
    ATOLL_TRY(add_stream(stream, state, waiting));
  }
  // Sorts by epoch, so that all streams advance together: a restore can use only epochs that the
  // archive has of all streams.
  std::ranges::stable_sort(waiting, {}, [](const Waiting& file) {
    return std::tuple(file.place.name.incarnation, file.reach_epoch);
  });
  return waiting;
}

/// Adds the closed files of a stream (R73). A file is closed if a later one of the stream has a
/// header, which the logger writes after the last block of the file. If the incarnation has ended,
/// all its files are closed.
Result<void> LogArchiver::add_stream(std::span<const LogFilePlace> stream,
                                     const ArchiveState& state, std::vector<Waiting>& waiting) {
  CHECK(!stream.empty());
  const PendingIncarnation* pending = state.find(stream.front().name.incarnation);
  if (pending == nullptr) return {};
  const ArchivedIncarnation& incarnation = pending->incarnation;
  struct Begun {
    LogFilePlace place;
    LogFileBegin begin;
  };
  std::vector<Begun> begun;
  for (const LogFilePlace& place : stream) {
    if (!state.lacks(place.node, place.name)) continue;
    // Usually the stream has only one file that is not archived, the one that its logger is
    // writing. The file is not closed, so this need not read it.
    const bool is_newest = &place == &stream.back();
    if (begun.empty() && is_newest && is_running(incarnation)) break;
    ATOLL_ASSIGN(const auto begin, begin_of(source_.files, place));
    if (!begin || begin->cluster_uuid != state.identity.cluster_uuid) continue;
    begun.push_back({place, *begin});
  }
  uint64_t reached = 0;
  for (size_t i = 0; i < begun.size(); ++i) {
    const bool is_last = i + 1 == begun.size();
    if (is_last && is_running(incarnation) && !fault::archive_open_log) break;
    const LogFilePlace& place = begun[i].place;
    // The end of a file in epochs is where the next file begins. If the next file is missing, this
    // file reaches no further than its own begin.
    uint64_t reach = begun[i].begin.closed_epoch;
    if (is_last) {
      reach = std::max(reach, incarnation.cut_epoch.value_or(reach));
    } else if (begun[i + 1].place.name.ordinal == place.name.ordinal + 1) {
      reach = begun[i + 1].begin.closed_epoch;
    }
    ATOLL_ASSIGN(const auto file, source_.files.open_for_reading(path_of(place)));
    ATOLL_ASSIGN(const uint64_t bytes, file->size());
    // The epochs never decrease within a stream, so the order by epoch is also that by ordinal. The
    // archive needs this order: a file counts as archived if a later one of its stream does.
    reached = std::max(reached, reach);
    waiting.push_back({place, bytes, reached});
  }
  return {};
}

void LogArchiver::publish_waiting(std::span<const Waiting> waiting) {
  std::map<std::string, uint64_t> since;
  uint64_t bytes = 0;
  uint64_t oldest = 0;
  for (const Waiting& file : waiting) {
    const std::string path = path_of(file.place);
    const auto known = seen_since_.find(path);
    const uint64_t seen = known == seen_since_.end() ? unix_seconds() : known->second;
    since[path] = seen;
    oldest = oldest == 0 ? seen : std::min(oldest, seen);
    bytes += file.bytes;
  }
  seen_since_ = std::move(since);
  // Relaxed, for all stores below: the words are for display only.
  metrics_.waiting_files.store(waiting.size(), std::memory_order_relaxed);
  metrics_.waiting_bytes.store(bytes, std::memory_order_relaxed);
  metrics_.waiting_since_s.store(oldest, std::memory_order_relaxed);
  metrics_.epoch.store(source_.progress.state().archived_epoch, std::memory_order_relaxed);
}

Result<void> LogArchiver::examine_target() {
  ArchiveState state = source_.progress.state();
  const std::string& directory = target_->directory();
  if (!directory.empty()) {
    ATOLL_TRY(examine_directory(directory, state));
  } else if (state.target != target_->name()) {
    state = begin_archive(state, target_->name());
  }
  if (state.identity != source_.progress.state().identity ||
      state.target != source_.progress.state().target) {
    ATOLL_TRY(source_.progress.replace(state));
  }
  if (state.records == 0) {
    // Stores the state before the identity. To a start that finds no state, the identity proves
    // that an archive has begun.
    ATOLL_TRY(source_.progress.store_pending());
    ATOLL_TRY(store_identity(state.identity));
  }
  if (directory.empty() || state.has_begun(target_->name())) return {};
  // This comes last: `begun` says that the directory has the identity, which must be durable there
  // before.
  state.note_begun(target_->name());
  return source_.progress.replace(std::move(state));
}

Result<void> LogArchiver::examine_directory(const std::string& directory, ArchiveState& state) {
  ATOLL_ASSIGN(const auto found, read_archive_identity(*archive_files_, directory));
  if (found && !found->is_of_same_data(state.identity)) {
    return other_data(directory, *found, state.identity);
  }
  if (found && found->id != state.identity.id) return rebuild(directory, *found, state);
  if (found) {
    ATOLL_TRY(refuse_set_back(directory, state));
    state.target = target_->name();  // the directory may have been moved
    return {};
  }
  const bool is_here = state.target == target_->name();
  // A state that an earlier version has written has no `begun`, but its number of records shows
  // that the archive has begun.
  if (state.has_begun(target_->name()) || (is_here && state.records != 0)) {
    return missing_identity(directory);
  }
  if (!is_here) state = begin_archive(state, target_->name());
  return {};
}

/// Stores the file, and then checks the identity of the archive. If the device was unmounted
/// meanwhile, the copy is on the mount point below it. Such a copy must not count, because the log
/// file would be deleted.
Result<FileSum> LogArchiver::put(const std::string& path, const std::string& name) {
  CHECK(is_examined_);
  ATOLL_ASSIGN(const FileSum sum, target_->put(path, name));
  const std::string& directory = target_->directory();
  if (directory.empty()) return sum;
  ATOLL_ASSIGN(const auto found, read_archive_identity(*archive_files_, directory));
  if (!found || found->id != source_.progress.state().identity.id) {
    return missing_identity(directory);
  }
  return sum;
}

/// Returns an error if the archive lacks its last record. Then it is an older copy of the archive,
/// and the log after it may already be deleted.
Result<void> LogArchiver::refuse_set_back(const std::string& directory, const ArchiveState& state) {
  CHECK(!state.identity.id.empty());
  if (state.records == 0) return {};
  const std::string last = path_in(directory, archive_record_name(state.records));
  ATOLL_ASSIGN(const bool has_last, archive_files_->exists(last));
  if (has_last) return {};
  return make_error(ExitCode::failed,
                    fmt::format("{}: is missing, but it was stored there: bring the whole archive "
                                "back, or set archive.directory to a new one and take a backup",
                                last));
}

/// Rebuilds the state from the records in the archive. The state was lost, or it was of another
/// archive meanwhile.
Result<void> LogArchiver::rebuild(const std::string& directory, const ArchiveIdentity& identity,
                                  ArchiveState& state) {
  ArchiveState next;
  next.identity = identity;
  next.target = target_->name();
  next.begun = state.begun;
  ATOLL_ASSIGN(const std::string damage,
               for_each_archive_record(*archive_files_, directory, identity,
                                       [&](const ArchiveRecord& record) { next.apply(record); }));
  if (!damage.empty()) {
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: data_dir does not know what this archive has, and its records end here: "
                    "bring this record back from a copy, or set archive.directory to a new "
                    "directory and take a backup: restores from {} end before the record",
                    damage, directory));
  }
  next.take_incarnations(state);
  state = std::move(next);
  return {};
}

Result<void> LogArchiver::store_identity(const ArchiveIdentity& identity) {
  const std::string path = pending_identity_path(source_.data_dir);
  ATOLL_TRY(replace_text_file(source_.files, path, encode_identity(identity)));
  const auto stored = target_->put(path, kIdentityName);
  return stored ? Result<void>() : std::unexpected(stored.error());
}

Result<void> LogArchiver::finish_record() {
  const std::string path = pending_record_path(source_.data_dir);
  ATOLL_ASSIGN(const auto text, read_text_file(source_.files, path));
  if (!text) return {};
  const auto record = decode_record(*text, path);
  const ArchiveState state = source_.progress.state();
  // A damaged record was never stored in the archive, because the whole record is written here
  // first. So this ignores it.
  if (!record || record->archive != state.identity.id || record->number != state.records + 1) {
    return {};
  }
  const auto stored = put(path, archive_record_name(record->number));
  if (!stored) return std::unexpected(stored.error());
  return source_.progress.apply(*record);
}

Result<void> LogArchiver::archive_file(const Waiting& waiting) {
  const std::string path = path_of(waiting.place);
  // Syncs the log file before it copies it, because its logger may not have synced the end yet. The
  // archive must not have data that the cluster may lose (R73).
  ATOLL_ASSIGN(const auto file, source_.files.open(path));
  ATOLL_TRY(file->sync());
  ATOLL_TRY(archive_files_->forget_cached(path));  // so that the copy has what the device has (R53)
  const std::string name = archived_log_name(waiting.place.node, waiting.place.name);
  ATOLL_ASSIGN(ArchiveRecord record, next_record());
  // Stores records without a file until the rest of the DDL records fits in the record of the file.
  // So the archive knows every storage in the file.
  while (record.ddl.size() == kMaxRecordDdl) {
    ATOLL_TRY(store_record(record));
    ATOLL_ASSIGN(record, next_record());
  }
  ATOLL_ASSIGN(const FileSum sum, put(path, name));
  record.file = ArchivedFile{name, sum.bytes, sum.crc32c, waiting.reach_epoch};
  ATOLL_TRY(store_record(record));
  metrics_.files.add();
  metrics_.bytes.add(sum.bytes);
  const std::lock_guard guard(mutex_);
  last_file_ = name;
  return {};
}

/// Returns whether a record without a file is due. Times of epochs alone do not make it due,
/// because the record of the next file has them.
bool LogArchiver::has_news() const {
  const ArchiveState state = source_.progress.state();
  return source_.durable_ddl_records() > state.ddl_records ||
         std::ranges::any_of(state.incarnations, is_news);
}

/// Returns the next record. Reads the DDL log after the log files were closed, so the record has
/// the creation of every storage in those files (R34).
Result<ArchiveRecord> LogArchiver::next_record() {
  const ArchiveState state = source_.progress.state();
  ArchiveRecord record;
  record.archive = state.identity.id;
  record.number = state.records + 1;
  for (const PendingIncarnation& pending : state.incarnations) {
    if (is_news(pending)) record.incarnations.push_back(pending.incarnation);
  }
  record.first_ddl = state.ddl_records;
  // Loads the count before it reads the DDL log. The log then has all these records, and no crash
  // can undo them.
  const uint64_t durable = source_.durable_ddl_records();
  if (durable > state.ddl_records) {
    ATOLL_ASSIGN(const auto ddl, read_ddl_log(source_.files, source_.data_dir,
                                              state.identity.cluster_uuid, durable));
    CHECK(ddl.records.size() >= durable);  // ensured by read_ddl_log
    const uint64_t end = std::min<uint64_t>(durable, state.ddl_records + kMaxRecordDdl);
    record.ddl.assign(ddl.records.begin() + static_cast<ptrdiff_t>(state.ddl_records),
                      ddl.records.begin() + static_cast<ptrdiff_t>(end));
  }
  ATOLL_ASSIGN(const auto times,
               read_epoch_times(source_.files, source_.data_dir, state.identity.cluster_uuid));
  for (const EpochTime& time : times) {
    if (time.epoch <= state.last_time_epoch) continue;
    if (record.times.size() == kMaxRecordTimes) break;
    record.times.push_back(time);
  }
  return record;
}

Result<void> LogArchiver::store_record(const ArchiveRecord& record) {
  const std::string path = pending_record_path(source_.data_dir);
  ATOLL_TRY(replace_text_file(source_.files, path, encode_record(record)));
  const auto stored = put(path, archive_record_name(record.number));
  if (!stored) return std::unexpected(stored.error());
  return source_.progress.apply(record);
}

/// Removes incarnations from the state that have ended and have no waiting file.
Result<void> LogArchiver::forget_complete() {
  ATOLL_ASSIGN(const auto waiting, find_waiting());
  const ArchiveState state = source_.progress.state();
  for (const PendingIncarnation& pending : state.incarnations) {
    const uint64_t number = pending.incarnation.number;
    if (!pending.is_cut_recorded) continue;
    const bool is_waited_for = std::ranges::any_of(
        waiting, [&](const Waiting& file) { return file.place.name.incarnation == number; });
    if (is_waited_for) continue;
    ATOLL_TRY(source_.progress.remove(number));
  }
  return {};
}

Json LogArchiver::status() const {
  const ArchiveState state = source_.progress.state();
  const std::lock_guard guard(mutex_);
  // Relaxed: for display.
  const auto get = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  };
  return {{"target", target_->name()},
          {"epoch", state.archived_epoch},
          {"records", state.records},
          {"file", last_file_},
          {"waiting_files", get(metrics_.waiting_files)},
          {"waiting_bytes", get(metrics_.waiting_bytes)},
          {"lag_seconds", seconds_since(metrics_.waiting_since_s)},
          {"failures", metrics_.failures.get()},
          {"failing_seconds", seconds_since(metrics_.failing_since_s)},
          {"error", error_}};
}

std::string LogArchiver::waiting_text() const {
  const uint64_t files = metrics_.waiting_files.load(std::memory_order_relaxed);
  if (files == 0) return "";
  const std::lock_guard guard(mutex_);
  return fmt::format("{} log files with {} bytes are kept until they are archived ({})", files,
                     metrics_.waiting_bytes.load(std::memory_order_relaxed),
                     error_.empty() ? "the archive is slower than the log" : error_);
}

}  // namespace atolldb
