#include "coordinator/archive/archive_progress.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

/// Returns the id in the owner file of data_dir (R47), or "" if there is no such file, as in tests.
Result<std::string> data_id_of(FileSystem& file_system, const std::string& data_dir) {
  ATOLL_ASSIGN(const auto text, read_text_file(file_system, data_dir + "/owner"));
  if (!text) return std::string();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto id = json.is_object() ? json.find("id") : json.end();
  if (id == json.end() || !id->is_string()) return std::string();
  return id->get<std::string>();
}

/// Returns whether an archive of these data has begun: then data_dir has the identity of the
/// archive.
bool has_identity(FileSystem& file_system, const std::string& data_dir,
                  const ArchiveIdentity& own) {
  const std::string path = pending_identity_path(data_dir);
  const auto text = read_text_file(file_system, path);
  if (!text || !*text) return false;
  const auto identity = decode_identity(**text, path);
  return identity && identity->is_of_same_data(own);
}

}  // namespace

std::string archive_target_name(const Config::Archive& archive) {
  CHECK(archive.is_on());
  return archive.command.empty() ? "directory " + archive.directory : "command";
}

Result<std::unique_ptr<ArchiveProgress>> ArchiveProgress::open(FileSystem& file_system,
                                                               const Config& config,
                                                               const Savepoint& savepoint,
                                                               bool salvages,
                                                               const Logger& logger) {
  const std::string& data_dir = config.cluster.data_dir;
  std::unique_ptr<ArchiveProgress> progress(
      new ArchiveProgress(file_system, data_dir, archive_target_name(config.archive), logger));
  ArchiveIdentity own = {"", "", savepoint.cluster_uuid, config.cluster.name};
  ATOLL_ASSIGN(own.data_id, data_id_of(file_system, data_dir));
  auto read = read_archive_state(file_system, data_dir);
  if (!read && read.error().code != ExitCode::corruption) return std::unexpected(read.error());
  if (!read) logger->error("{}: the archive begins again", read.error().message);
  ArchiveState state;
  const bool is_known = read && *read && (*read)->identity.is_of_same_data(own);
  if (is_known) {
    state = **read;
  } else {
    state.identity = own;
    state.identity.id = new_archive_id();
    state.target = progress->target_;
    // The state may be lost although these data were archived. Then this notes that the directory
    // must have an archive. If the directory is empty, its device is not mounted.
    const bool was_archived = !read || has_identity(file_system, data_dir, own);
    if (was_archived && config.archive.command.empty()) state.note_begun(state.target);
  }
  const bool has_ended = state.end_unlisted(savepoint);
  const bool has_new = state.add(savepoint);
  // The new history begins after the incarnations of the savepoint, which were just added and
  // belong to the old one.
  if (salvages) ++state.history;
  if (!is_known || has_ended || has_new || salvages) progress->store_or_warn(state);
  progress->state_ = std::move(state);
  return progress;
}

Result<void> ArchiveProgress::note_salvage(FileSystem& file_system, const std::string& data_dir) {
  auto read = read_archive_state(file_system, data_dir);
  if (!read && read.error().code != ExitCode::corruption) return std::unexpected(read.error());
  if (!read || !*read) return {};
  ++(*read)->history;
  return write_archive_state(file_system, data_dir, **read);
}

bool ArchiveProgress::must_stay(const LogFilePlace& place) const {
  const std::lock_guard guard(mutex_);
  // If the config names another place than the state, this assumes that the archive there has no
  // file. The archiver has not examined it yet.
  if (state_.target != target_) return state_.find(place.name.incarnation) != nullptr;
  return state_.lacks(place.node, place.name);
}

ArchiveState ArchiveProgress::state() const {
  const std::lock_guard guard(mutex_);
  return state_;
}

void ArchiveProgress::add(const Savepoint& savepoint) {
  const std::lock_guard changing(change_mutex_);
  ArchiveState next = state();
  if (!next.add(savepoint)) return;
  store_or_warn(next);
  const std::lock_guard guard(mutex_);
  state_ = std::move(next);
}

Result<void> ArchiveProgress::apply(const ArchiveRecord& record) {
  const std::lock_guard changing(change_mutex_);
  ArchiveState next = state();
  next.apply(record);
  return store(std::move(next));
}

Result<void> ArchiveProgress::remove(uint64_t incarnation) {
  const std::lock_guard changing(change_mutex_);
  ArchiveState next = state();
  next.remove(incarnation);
  return store(std::move(next));
}

Result<void> ArchiveProgress::replace(ArchiveState next) {
  const std::lock_guard changing(change_mutex_);
  next.take_incarnations(state());  // keeps incarnations that `add` has added meanwhile
  return store(std::move(next));
}

Result<void> ArchiveProgress::store_pending() {
  const std::lock_guard changing(change_mutex_);
  if (is_stored_) return {};
  return store(state());
}

Result<void> ArchiveProgress::store(ArchiveState next) {
  ATOLL_TRY(write_archive_state(files_, data_dir_, next));
  is_stored_ = true;
  const std::lock_guard guard(mutex_);
  state_ = std::move(next);
  return {};
}

void ArchiveProgress::store_or_warn(const ArchiveState& state) {
  const auto stored = write_archive_state(files_, data_dir_, state);
  is_stored_ = stored.has_value();
  if (stored) return;
  logger_->warn("{}: no log is forgotten until the state of the archive is stored",
                stored.error().message);
}

}  // namespace atolldb
