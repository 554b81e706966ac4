#include "coordinator/checkpoints/checkpoint_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "coordinator/durability/disk_room.h"
#include "coordinator/epoch/durable_epoch.h"
#include "engine/checkpoint/range_walk.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/log/savepoint.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system_wrappers.h"

namespace atolldb {
namespace {

/// Marks the numbers of records that may be inexact. Heaps are copied up to the replay epoch, so
/// their numbers are exact. Each record of a tree is copied at another instant.
void mark_estimates(bool has_commits, std::vector<CheckpointStorage>& storages) {
  for (CheckpointStorage& storage : storages) {
    storage.is_estimate = has_commits && is_tree(storage.type);
  }
}

/// Returns the storages whose records the checkpoint counts. All records of an array exist, so
/// the number of those that were written says little.
std::vector<StorageSpace> counted_storages(const CheckpointMetadata& checkpoint) {
  std::vector<StorageSpace> spaces;
  for (const CheckpointStorage& storage : checkpoint.storages) {
    if (!storage.records || storage.type == StorageType::array) continue;
    spaces.push_back(
        {.id = storage.id, .records = storage.records, .is_estimate = storage.is_estimate});
  }
  return spaces;
}

}  // namespace

CheckpointManager::CheckpointManager(const SchemeContext& context, Logger logger)
    : context_(context),
      config_(context.config),
      control_(context.control),
      durable_(context.durable),
      loggers_(context.nodes, context.metrics),
      logger_(std::move(logger)),
      job_(config_, context.call_node),
      recovery_(config_, context.call_node, context.clock) {
  CHECK(config_.durability.scheme == DurabilityScheme::silor);
  CHECK(context_.nodes.size() == config_.nodes.size());
}

void CheckpointManager::start() {
  CHECK(is_own_thread() && taker_ == nullptr);
  durable_->keep_ballast(logger_);
  record_backup_pins();
  damage_thread_.start();
  taker_ = make_taker();
  taker_->start();
}

void CheckpointManager::end() {
  if (taker_ != nullptr) {
    job_.cancel();
    taker_->stop();
  }
  damage_thread_.stop();
}

std::unique_ptr<CheckpointTaker> CheckpointManager::make_taker() {
  CheckpointTakerHooks hooks;
  hooks.on_start = [this] { thread_ = std::this_thread::get_id(); };
  hooks.take = [this] { return take(); };
  hooks.newest = [this] {
    // Relaxed: the taker's thread is the only writer.
    return static_cast<uint32_t>(checkpoint_metrics_.id.load(std::memory_order_relaxed));
  };
  hooks.has_new_commits = [this] { return has_new_commits(); };
  hooks.log_bytes = [this] { return loggers_.most_bytes(); };
  hooks.why_log_is_long = [this] { return why_log_is_long(); };
  return std::make_unique<CheckpointTaker>(config_.durability, std::move(hooks), logger_);
}

Result<uint32_t> CheckpointManager::take() {
  CHECK(is_own_thread());
  if (!is_cluster_running(control_)) return make_error(ExitCode::not_running, "the cluster stops");
  const auto begun = std::chrono::steady_clock::now();
  // Relaxed, here and below, because these words are metrics.
  checkpoint_metrics_.is_taking.store(true, std::memory_order_relaxed);
  Result<CheckpointMetadata> made = make_checkpoint();
  checkpoint_metrics_.is_taking.store(false, std::memory_order_relaxed);
  if (!made && !is_cluster_running(control_)) {
    // A node that has ended before the coordinator is no failure of the checkpoint.
    made = make_error(ExitCode::not_running, "the cluster stops: " + made.error().message);
  }
  record_attempt(made, std::chrono::steady_clock::now() - begun);
  if (!made) return std::unexpected(made.error());
  has_replayed_ = false;
  delete_unneeded();
  if (!loggers_.lacks_files()) durable_->keep_ballast(logger_);
  return static_cast<uint32_t>(made->id);
}

/// Makes a checkpoint, up to its savepoint. README.md explains the order of the steps. An error
/// removes the files of the checkpoint, and the previous one remains the newest.
Result<CheckpointMetadata> CheckpointManager::make_checkpoint() {
  if (loggers_.lacks_files()) {
    ATOLL_TRY(give_up_backup_pins());
  } else {
    ATOLL_TRY(check_room());
  }
  ATOLL_ASSIGN(const uint32_t id, durable_->take_snapshot_id());
  const CheckpointInput task = next_task(id);
  bool may_be_named = false;
  auto made = copy_and_install(task, may_be_named);
  // Even after an error, metadata or the savepoint on the disk may name the files. Then they stay
  // until delete_unneeded removes them.
  const auto ended = job_.end(id, may_be_named);
  if (made && !ended) {
    logger_->warn("checkpoint {}: exists, but a node does not end it: {}", id,
                  ended.error().message);
  }
  return made;
}

CheckpointInput CheckpointManager::next_task(uint32_t id) {
  // The replay epoch comes before the list of storages. So a storage that the list lacks has
  // commits of the replay epoch or later only, and the log has them all (R97).
  CheckpointInput task;
  task.id = id;
  task.keeps_reserve = !loggers_.lacks_files();
  task.cluster_uuid = durable_->data_uuid();
  if (fault::storages_before_replay_epoch) task.storages = context_.catalog.entries();
  if (fault::storages_before_replay_epoch) reach(SyncPoint::listing_storages);
  task.replay_epoch = replay_epoch_of_checkpoint(control_.epochs);
  if (fault::storages_before_replay_epoch) return task;
  reach(SyncPoint::listing_storages);
  task.storages = context_.catalog.entries();
  CHECK(task.replay_epoch >= control_.start_epoch);
  return task;
}

/// Sets `may_be_named` before the metadata and the savepoint are written.
Result<CheckpointMetadata> CheckpointManager::copy_and_install(const CheckpointInput& task,
                                                               bool& may_be_named) {
  ATOLL_ASSIGN(CheckpointMetadata metadata, job_.copy(task));
  ATOLL_TRY(await_logged_drops());
  metadata.end_epoch = end_epoch_of_checkpoint(control_.epochs);
  ATOLL_ASSIGN(const uint64_t durable_epoch, await_durable(metadata.end_epoch));
  // A commit stores its records before it makes its epoch dirty (R27). The copy has records up to
  // the end epoch only (R89), and once that epoch is durable, all its commits have done both.
  mark_estimates(dirty_epoch(context_.nodes) >= task.replay_epoch, metadata.storages);
  // From here on metadata may exist that name the files, even after an error (R91).
  may_be_named = true;
  ATOLL_TRY(
      install_checkpoint(durable_->files(), config_.cluster.data_dir, metadata, durable_epoch));
  ATOLL_TRY(durable_->store_checkpoint(metadata));
  return metadata;
}

/// Waits until all drops that hide a storage now are logged (R102). The copy has omitted such a
/// storage, and a crash would bring it back.
Result<void> CheckpointManager::await_logged_drops() {
  constexpr std::chrono::milliseconds kDropCheckPause{20};
  while (!fault::checkpoint_amid_unlogged_drop) {
    ATOLL_ASSIGN(const bool has_unlogged, context_.catalog.has_unlogged_drop());
    if (!has_unlogged) break;
    if (!is_cluster_running(control_) || job_.is_cancelled()) {
      return make_error(ExitCode::not_running, "the cluster stops");
    }
    std::this_thread::sleep_for(kDropCheckPause);
  }
  return {};
}

/// An idle cluster closes no further epoch after its closing marker (R51), so this function asks
/// for it (R71).
Result<uint64_t> CheckpointManager::await_durable(uint64_t epoch) {
  constexpr std::chrono::milliseconds kStateCheckPause{100};
  context_.clock.close_up_to(epoch);
  for (;;) {
    if (wait_until_durable(control_, epoch, kStateCheckPause)) break;
    // In a cluster that stops, a logger may have ended before it has closed the epoch.
    if (!is_cluster_running(control_) || job_.is_cancelled()) {
      return make_error(ExitCode::not_running, "the cluster stops");
    }
  }
  // Acquire pairs with the release in raise_durable: the epoch is durable on the devices.
  const uint64_t durable = control_.epochs.durable.load(std::memory_order_acquire);
  CHECK(durable >= epoch);
  return durable;
}

/// Makes room for the next files of the loggers (R65). The pinned checkpoint and the log after it
/// are deleted at once, because the next checkpoint needs room, too.
Result<void> CheckpointManager::give_up_backup_pins() {
  ATOLL_ASSIGN(const size_t given_up, durable_->give_up_backup_pins());
  if (given_up == 0) return {};
  logger_->warn(
      "{} pins of backups and exports are removed, because a logger has no room for its "
      "next file: those backups and exports may fail",
      given_up);
  record_backup_pins();
  delete_unneeded();
  return {};
}

Result<void> CheckpointManager::check_room() const {
  std::map<std::string, uint64_t> needed = {{config_.cluster.data_dir, 0}};
  if (durable_->checkpoint()) {
    for (const CheckpointFileInfo& file : durable_->checkpoint()->files) {
      needed[file.directory] += file.bytes;
    }
  }
  for (const auto& [directory, bytes] : needed) {
    ATOLL_ASSIGN(const uint64_t free, free_bytes_at(directory));
    const uint64_t reserve = disk_reserve(config_, directory);
    if (free >= reserve + bytes) continue;
    return make_error(
        ExitCode::disk_full,
        fmt::format("{}: {} bytes are free, but a checkpoint needs about {} beside the reserve of "
                    "{} bytes: free disk space, or lower gleaner.disk_reserve",
                    directory, free, bytes, reserve));
  }
  return {};
}

/// Deletes files of older checkpoints, and of the log before the newest one. After an error they
/// only take room until the next checkpoint or start.
void CheckpointManager::delete_unneeded() {
  CHECK(is_own_thread());
  const auto deleted = durable_->delete_unneeded({});
  if (!deleted) {
    logger_->warn("obsolete files remain until the next checkpoint: {}", deleted.error().message);
  }
}

/// Returns whether a recovery from the newest checkpoint would replay anything.
bool CheckpointManager::has_new_commits() const {
  // Relaxed: the taker's thread is the only writer.
  const uint64_t replay_epoch = checkpoint_metrics_.replay_epoch.load(std::memory_order_relaxed);
  return has_replayed_ || dirty_epoch(context_.nodes) >= std::max<uint64_t>(replay_epoch, 1);
}

std::string CheckpointManager::why_log_is_long() const {
  if (loggers_.lacks_files()) return "a logger has no room for its next file";
  return durable_->listed_incarnations() > kMaxListedIncarnations
             ? "the savepoint lists too many incarnations"
             : "";
}

/// Records the checkpoint as the newest one, for later decisions, the metrics and the status.
void CheckpointManager::record_newest(const CheckpointMetadata& checkpoint) {
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (const CheckpointFileInfo& file : checkpoint.files) {
    bytes += file.bytes;
    records += file.records;
  }
  CheckpointMetrics& metrics = checkpoint_metrics_;
  CHECK(checkpoint.id > metrics.id.load(std::memory_order_relaxed));
  CHECK(checkpoint.replay_epoch > metrics.replay_epoch.load(std::memory_order_relaxed));
  metrics.replay_epoch.store(checkpoint.replay_epoch, std::memory_order_relaxed);
  metrics.end_epoch.store(checkpoint.end_epoch, std::memory_order_relaxed);
  metrics.bytes.store(bytes, std::memory_order_relaxed);
  metrics.records.store(records, std::memory_order_relaxed);
  metrics.files.store(checkpoint.files.size(), std::memory_order_relaxed);
  metrics.storages.set(counted_storages(checkpoint));
  metrics.id.store(checkpoint.id, std::memory_order_relaxed);
}

void CheckpointManager::record_attempt(const Result<CheckpointMetadata>& made,
                                       std::chrono::nanoseconds took) {
  using std::chrono::duration_cast;
  {
    const std::lock_guard guard(mutex_);
    const bool has_failed = !made && made.error().code != ExitCode::not_running;
    error_ = has_failed ? made.error().message : "";
  }
  CheckpointMetrics& metrics = checkpoint_metrics_;
  if (!made) {
    if (made.error().code != ExitCode::not_running) metrics.failed.add();
    return;
  }
  metrics.taken.add();
  const auto us = duration_cast<std::chrono::microseconds>(took).count();
  metrics.duration_us.store(static_cast<uint64_t>(us), std::memory_order_relaxed);
  const auto now =
      duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  metrics.taken_at_s.store(static_cast<uint64_t>(now.count()), std::memory_order_relaxed);
  record_newest(*made);
}

}  // namespace atolldb
