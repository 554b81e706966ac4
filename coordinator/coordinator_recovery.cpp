// Recovery is the gleaner: what the logs hold behind the newest snapshot becomes another one, which
// the cluster begins from (design: stratified snapshots; rules R32, R36, R43). Meanwhile
// transactions may read the snapshot before, and those that are pinned, as in a running cluster:
// nothing of them changes, and no volatile page is made.
#include <algorithm>
#include <string>
#include <utility>

#include "coordinator/coordinator.h"
#include "coordinator/gleaner/log_volume.h"
#include "engine/transaction/vid.h"
#include "shared/memory/recovery_text.h"

namespace atolldb {

Result<void> Coordinator::recover() {
  if (!durable_->to_glean().empty()) {
    begin_recovery();
    if (const auto made = take_recovery_snapshot(); !made) return made;
  }
  if (durable_->snapshot()) {
    if (const auto published = publish(*durable_->snapshot()); !published) return published;
  }
  if (const auto forgotten = forget_unneeded(); !forgotten) {
    logger_->warn("files that nothing needs stay for now: {}", forgotten.error().message);
  }
  warn_of_left_directories();
  return {};
}

/// What fails here only makes readers wait for the end of the recovery.
void Coordinator::begin_recovery() {
  // Relaxed: for people.
  bytes_to_recover_.store(log_volume(durable_->files(), durable_->to_glean()),
                          std::memory_order_relaxed);
  std::string text;
  if (durable_->snapshot()) {
    const SnapshotMetadata& newest = *durable_->snapshot();
    if (const auto offered = publish_to_transactions(); offered) {
      note_newest(newest);
      Json readable = {{"snapshot", newest.id}, {"epoch", newest.epoch}};
      readable["others"] = Json::array();
      for (const auto& [id, offer] : offered_) {
        if (id != newest.id) readable["others"].push_back(id);
      }
      text = "snapshot " + std::to_string(newest.id) + " of epoch " + std::to_string(newest.epoch);
      logger_->info("recovery: transactions may read {} already", text);
      const std::lock_guard guard(mutex_);
      readable_ = std::move(readable);
    } else {
      logger_->warn("no snapshot can be read before the end of the recovery: {}",
                    offered.error().message);
      // A node may have got it; if it cannot be asked to forget it, the recovery fails as well.
      [[maybe_unused]] const auto withdrawn = withdraw_on_nodes(config_, call_node_, {});
      offered_.clear();
      // Relaxed: for people.
      control_->readable_snapshot.store(0, std::memory_order_relaxed);
    }
  }
  set_state(ClusterState::recovering);
  if (launcher_.report_recovering) launcher_.report_recovering(text);
}

void Coordinator::note_recovery_progress() {
  uint64_t read = 0;
  // Relaxed, all of it: for people.
  for (const MetricsSegment* metrics : metrics_) {
    read += metrics->gleaner.bytes_read.load(std::memory_order_relaxed);
  }
  const uint64_t all = bytes_to_recover_.load(std::memory_order_relaxed);
  const uint64_t percent = all == 0 ? 0 : std::min<uint64_t>(100, read * 100 / all);
  control_->recovered_percent.store(static_cast<uint32_t>(percent), std::memory_order_relaxed);
}

Json Coordinator::recovery_status() const {
  if (state() != ClusterState::recovering) return {};
  const std::lock_guard guard(mutex_);
  // Relaxed: for people.
  return {{"log_bytes", bytes_to_recover_.load(std::memory_order_relaxed)},
          {"percent_read", control_->recovered_percent.load(std::memory_order_relaxed)},
          {"reads", readable_}};
}

Result<void> Coordinator::check_runs(const std::string& op) const {
  const ClusterState state = this->state();
  if (state == ClusterState::running) return {};
  if (state == ClusterState::recovering) {
    return make_error(ExitCode::recovering, op + ": " + recovery_text(*control_));
  }
  return make_error(ExitCode::not_running,
                    op + ": the cluster does not run: try again when it does");
}

void Coordinator::warn_of_left_directories() {
  const auto left = durable_->left_directories();
  if (!left) return logger_->warn("{}", left.error().message);
  for (const auto& [directory, files] : *left) {
    if (files == 0) {
      logger_->info("{}: is not in the config any more, and holds nothing of this cluster",
                    directory);
    } else {
      logger_->warn(
          "{}: is not in the config any more, but holds {} files of snapshots or logs that are "
          "needed: keep it; they are deleted when nothing needs them",
          directory, files);
    }
  }
}

Result<void> Coordinator::take_recovery_snapshot() {
  const uint64_t epoch = durable_->recovery_epoch();
  logger_->info("recovery: {} logs up to epoch {} become a snapshot", durable_->to_glean().size(),
                epoch);
  // Never all pages anew: a start waits for this, and there may be no room. Nor is any reserved:
  // without this snapshot nothing starts, and the logs that it covers make room.
  return glean({.epoch = epoch, .streams = durable_->to_glean(), .storages = storages_to_glean()});
}

std::vector<StorageToGlean> Coordinator::storages_to_glean() const {
  std::vector<StorageToGlean> storages;
  for (const StorageControl* storage : catalog_->list()) {
    storages.push_back(
        {storage->id, storage->type, storage->name, storage->payload_bytes, storage->record_count});
  }
  return storages;
}

/// REQUIRES: no transaction runs yet that looks at a storage's root: those that read a snapshot
/// have roots of their own. The files are open on all nodes before any pointer leads there.
Result<void> Coordinator::publish(const SnapshotMetadata& snapshot) {
  const auto opened = open_kept_and(snapshot);
  if (!opened) return opened;
  for (const SnapshotStorage& stored : snapshot.storages) {
    StorageControl& storage = control_->storage(stored.id);
    const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_relaxed));
    // It was dropped when the snapshot had been made.
    if (storage.id != stored.id || state != StorageState::ready) continue;
    // Relaxed: the release of the state `running` publishes both.
    storage.root.snapshot_word.store(stored.root.is_null() ? 0 : stored.root.word(),
                                     std::memory_order_relaxed);
    // What the snapshot left out, erased keys among it, is not later than its epoch.
    storage.root_floor.store(Vid::make(snapshot.epoch, 0).word(), std::memory_order_relaxed);
  }
  published_ = snapshot;
  kept_.add(snapshot);
  note_newest(snapshot);
  logger_->info("snapshot {} of epoch {}: {} storages, {} files", snapshot.id, snapshot.epoch,
                snapshot.storages.size(), snapshot.files.size());
  return {};
}

}  // namespace atolldb
