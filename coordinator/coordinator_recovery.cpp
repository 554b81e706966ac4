// Recovery is the gleaner: what the logs hold behind the newest snapshot becomes another one, which
// the cluster begins from (design: stratified snapshots; rules R32, R36, R43).
#include <utility>

#include "coordinator/coordinator.h"
#include "engine/transaction/vid.h"

namespace atolldb {

Result<void> Coordinator::recover() {
  if (!durable_->to_glean().empty()) {
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

/// REQUIRES: no transaction runs yet. The files are open on all nodes before any pointer leads
/// there.
Result<void> Coordinator::publish(const SnapshotMetadata& snapshot) {
  const auto opened = open_on_nodes(config_, call_node_, snapshot.files);
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
