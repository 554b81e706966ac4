#include "ops/cli/backup_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "coordinator/durability/disk_room.h"
#include "engine/log/savepoint_snapshots.h"
#include "ops/backup/take_backup.h"
#include "ops/cli/cluster_call.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/owner_file.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

/// Time limit for the removal of a pin. A cluster that restarts answers again within this time,
/// unless its recovery is long.
constexpr std::chrono::seconds kUnpinPatience{30};
constexpr std::chrono::milliseconds kUnpinPause{200};

/// Returns whether the coordinator has answered that the pin does not exist now.
bool is_refused(const Error& error) {
  return error.code == ExitCode::failed || error.code == ExitCode::resources;
}

/// Returns nothing if the path cannot be examined.
std::optional<dev_t> device_of_path(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_dev;
}

}  // namespace

uint64_t reserve_beside(const Config& live, const std::string& directory) {
  const auto device = device_of_path(directory);
  const auto is_there = [&](const std::string& own) { return device_of_path(own) == device; };
  const bool shares =
      is_there(live.cluster.data_dir) || std::ranges::any_of(node_directories(live), is_there);
  return device && shares ? disk_reserve(live, directory) : 0;
}

BackupSource::BackupSource(BackupSource&& other) noexcept
    : files_(other.files_),
      choice_(std::move(other.choice_)),
      data_dir_(std::move(other.data_dir_)),
      directories_(std::move(other.directories_)),
      cluster_(std::move(other.cluster_)),
      data_id_(std::move(other.data_id_)),
      live_(std::exchange(other.live_, std::nullopt)),
      locks_(std::exchange(other.locks_, std::nullopt)),
      lock_(std::exchange(other.lock_, std::nullopt)),
      pins_(std::exchange(other.pins_, {})),
      newest_(other.newest_),
      older_(other.older_),
      durable_epoch_(other.durable_epoch_) {}

BackupSource::~BackupSource() {
  if (const auto released = release(); !released) {
    std::fprintf(stderr, "atoll: %s\n", printable(released.error().message).c_str());
  }
  if (locks_) locks_->forget_processes();
}

Result<BackupSource> BackupSource::open(FileSystem& file_system, const ClusterChoice& choice,
                                        const DataOptions& options) {
  BackupSource source(file_system, choice);
  if (options.data_dir.empty()) {
    auto running = find_running(choice);
    if (running) {
      source.live_ = *std::move(running);
    } else if (running.error().code != ExitCode::not_running) {
      return std::unexpected(running.error());
    }
  }
  if (source.live_) {
    if (source.live_->durability.mode != DurabilityMode::durable) {
      return make_error(ExitCode::failed,
                        "backup: nothing is durable here: backups need durability.mode "
                        "\"durable\"");
    }
    source.data_dir_ = source.live_->cluster.data_dir;
    source.directories_ = node_directories(*source.live_);
  } else {
    // Checks the directory before the locks are taken, because a lock creates a file. So no file is
    // created in a directory that belongs to no cluster.
    ATOLL_ASSIGN(const LogData data, find_log_data(file_system, choice, options));
    source.data_dir_ = data.data_dir;
    source.directories_.assign(data.directories.begin(), data.directories.end());
    ATOLL_ASSIGN(auto locks, lock_dead_data("atoll backup", source.data_dir_, source.directories_,
                                            file_system));
    source.locks_.emplace(std::move(locks));
  }
  ATOLL_ASSIGN(const auto owner, read_owner(file_system, source.data_dir_));
  if (!owner || !owner->is_data_dir) {
    return make_error(ExitCode::identity,
                      owner_path(source.data_dir_) +
                          ": the file is missing, or is not that of a data directory: choose "
                          "another directory");
  }
  source.cluster_ = owner->cluster;
  source.data_id_ = owner->id;
  ATOLL_ASSIGN(auto lock,
               FolderLock::exclusive(backup_lock_path(source.data_dir_),
                                     "another `atoll backup` of this cluster, or an `atoll "
                                     "export` of its checkpoints"));
  source.lock_.emplace(std::move(lock));
  return source;
}

uint64_t BackupSource::reserve_for(const std::string& directory) const {
  return live_ ? reserve_beside(*live_, directory) : 0;
}

Result<Savepoint> BackupSource::savepoint() const {
  return read_live_savepoint(*files_, data_dir_);
}

Result<Json> BackupSource::call(ControlOperation operation, const Json& body) const {
  CHECK(live_.has_value());
  return call_coordinator(*live_, operation, body, kSnapshotTimeout);
}

/// The removed pins belong to no running backup, because this backup holds the lock.
Result<std::vector<std::string>> BackupSource::remove_left_pins() {
  CHECK(lock_.has_value());
  std::vector<std::string> removed;
  ATOLL_ASSIGN(Savepoint state, savepoint());
  const std::vector<PinnedSnapshot> pinned = state.pinned;
  for (const PinnedSnapshot& pin : pinned) {
    const bool is_own = std::ranges::find(pins_, pin.name) != pins_.end();
    if (!pin.is_of_backup() || is_own) continue;
    if (is_live()) {
      ATOLL_TRY(call(ControlOperation::snapshot_unpin, Json{{"pin", pin.name}}));
    } else {
      ATOLL_TRY(atolldb::unpin_snapshot(*files_, data_dir_, state, pin.name));
    }
    removed.push_back(pin.name);
  }
  return removed;
}

Result<void> BackupSource::remove_left_pin(const std::string& backup_id) {
  CHECK(lock_.has_value() && pins_.empty());
  ATOLL_ASSIGN(const Savepoint state, savepoint());
  const std::string name = pin_name(backup_id);
  const auto left = std::ranges::find(state.pinned, name, &PinnedSnapshot::name);
  if (left != state.pinned.end()) pins_.push_back(name);
  return release();
}

/// Returns the id of the pinned snapshot. `snapshot`: its id; 0: the newest one.
Result<uint32_t> BackupSource::pin(uint32_t snapshot, const std::string& name) {
  // Remembers the name before the call, because the pin may exist even if the answer is lost.
  pins_.push_back(name);
  if (!is_live()) return pin_dead(snapshot, name);
  const auto pinned = call(ControlOperation::snapshot_pin, Json{{"id", snapshot}, {"name", name}});
  if (!pinned) {
    if (is_refused(pinned.error())) pins_.pop_back();
    return std::unexpected(pinned.error());
  }
  const uint64_t durable = pinned->value("durable_epoch", uint64_t{0});
  durable_epoch_ = std::max(durable_epoch_.value_or(0), durable);
  return pinned->value("id", uint32_t{0});
}

Result<uint32_t> BackupSource::pin_dead(uint32_t snapshot, const std::string& name) const {
  CHECK(locks_.has_value());
  ATOLL_ASSIGN(Savepoint state, savepoint());
  ATOLL_ASSIGN(const PinnedSnapshot chosen, choose_pin(state, snapshot, name));
  ATOLL_TRY(atolldb::pin_snapshot(*files_, data_dir_, state, chosen.id, chosen.name));
  return chosen.id;
}

Result<void> BackupSource::choose_snapshots(const std::string& backup_id) {
  ATOLL_ASSIGN(Savepoint state, savepoint());
  if (!is_live()) {
    newest_ = state.snapshot;
    older_ = state.kept.empty() ? 0 : state.kept.front().id;
    return {};
  }
  if (state.snapshot == 0) {
    const bool has_checkpoints = state.scheme == DurabilityScheme::silor;
    ATOLL_TRY(
        call(has_checkpoints ? ControlOperation::checkpoint_take : ControlOperation::snapshot_take,
             Json::object()));
  }
  const std::string name = pin_name(backup_id);
  ATOLL_ASSIGN(newest_, pin(0, name));
  CHECK(newest_ != 0);
  // Reads the savepoint after the first pin, so that the log after both snapshots is kept from here
  // on.
  ATOLL_ASSIGN(state, savepoint());
  if (state.kept.empty() || state.kept.front().id >= newest_) return {};
  const uint32_t oldest = state.kept.front().id;
  const auto pinned = pin(oldest, name + "-older");
  if (!pinned) {
    // The older snapshot is skipped if it has been deleted meanwhile, or if all pins are used.
    if (is_refused(pinned.error())) return {};
    return std::unexpected(pinned.error());
  }
  // The list may have lost the older snapshot before the pin was made. The log after that snapshot
  // is then incomplete. The snapshot may still exist, because a pin of a user keeps its pages, but
  // not the log.
  ATOLL_ASSIGN(state, savepoint());
  if (std::ranges::find(state.kept, oldest, &KeptSnapshot::id) != state.kept.end()) older_ = oldest;
  return {};
}

Result<void> BackupSource::choose_checkpoint(const std::string& export_id) {
  ATOLL_TRY(choose_snapshots(export_id));
  if (is_live() || newest_ == 0) return {};
  ATOLL_ASSIGN(const uint32_t pinned, pin(newest_, pin_name(export_id)));
  CHECK(pinned == newest_);
  return {};
}

std::string BackupSource::pin_name(const std::string& backup_id) {
  return std::string(kBackupPinPrefix) + backup_id;
}

Result<void> BackupSource::continue_with(const std::string& backup_id, uint32_t snapshot,
                                         uint64_t epoch) {
  CHECK(pins_.empty());
  ATOLL_ASSIGN(const Savepoint state, savepoint());
  const std::string name = pin_name(backup_id);
  const auto found = std::ranges::find(state.pinned, name, &PinnedSnapshot::name);
  const bool has_pin = found != state.pinned.end();
  newest_ = snapshot;
  if (has_pin) pins_.push_back(name);
  bool is_kept = has_pin ? found->id == snapshot : state.snapshot == snapshot;
  if (is_live()) durable_epoch_ = epoch;
  // Without a checkpoint nothing can be pinned, and the next checkpoint deletes the log.
  if (is_live() && snapshot == 0) is_kept = false;
  if (is_kept && !has_pin && snapshot != 0) {
    ATOLL_ASSIGN(const uint32_t pinned, pin(0, name));
    is_kept = pinned == snapshot;
  }
  if (is_kept) return {};
  return make_error(ExitCode::failed,
                    fmt::format("{}: checkpoint {} and the log after it are not kept any more, so "
                                "the export cannot continue: export into a new directory",
                                data_dir_, snapshot));
}

Result<void> BackupSource::release() {
  std::string left;
  std::optional<Error> problem;
  for (const std::string& name : std::exchange(pins_, {})) {
    const auto removed = unpin(name);
    if (removed) continue;
    left += (left.empty() ? "" : ", ") + name;
    problem = removed.error();
  }
  if (!problem) return {};
  return make_error(problem->code,
                    fmt::format("pins of snapshots stay ({}), which keep their log: the next "
                                "`atoll backup` removes them: {}",
                                left, problem->message));
}

/// Returns whether the savepoint lacks the pin. A cluster that was short of room may have given up
/// the pin, or the answer to an earlier request was lost.
bool BackupSource::is_unpinned(const std::string& name) const {
  const auto state = savepoint();
  return state &&
         std::ranges::find(state->pinned, name, &PinnedSnapshot::name) == state->pinned.end();
}

/// Repeats the removal for some time, because the cluster may have ended or may be restarting.
Result<void> BackupSource::unpin(const std::string& name) const {
  const auto give_up = std::chrono::steady_clock::now() + kUnpinPatience;
  for (;;) {
    Result<void> done = unpin_once(name);
    if (done || is_unpinned(name)) return {};
    if (std::chrono::steady_clock::now() > give_up) return done;
    std::this_thread::sleep_for(kUnpinPause);
  }
}

Result<void> BackupSource::unpin_once(const std::string& name) const {
  if (locks_) return unpin_dead(name);  // the locked data belong to no running cluster
  const auto running = find_running(choice_);
  if (!running && running.error().code != ExitCode::not_running) {
    return std::unexpected(running.error());
  }
  // Without --cluster and -c, find_running returns the only running cluster. That may be another
  // cluster than the one backed up.
  if (!running || running->cluster.data_dir != data_dir_) return unpin_dead(name);
  ATOLL_TRY(call_coordinator(*running, ControlOperation::snapshot_unpin, Json{{"pin", name}},
                             kSnapshotTimeout));
  return {};
}

Result<void> BackupSource::unpin_dead(const std::string& name) const {
  const auto remove = [&]() -> Result<void> {
    ATOLL_ASSIGN(Savepoint state, savepoint());
    return atolldb::unpin_snapshot(*files_, data_dir_, state, name);
  };
  if (locks_) return remove();  // the data have been locked since `open`
  ATOLL_ASSIGN(auto locks, lock_dead_data("atoll backup", data_dir_, directories_, *files_));
  const Result<void> removed = remove();
  locks.forget_processes();
  return removed;
}

}  // namespace atolldb::cli
