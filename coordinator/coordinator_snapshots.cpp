// Snapshots of a running cluster (design: stratified snapshots; rules R36-R38). They bound what
// recovery has to glean, and let old logs and volatile pages go (coordinator_install.cpp).
#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "coordinator/coordinator.h"

namespace atolldb {
namespace {

/// A base with files of so many snapshots is written anew as a whole, when there is time and room:
/// so the number of files, and the space that pages take which nothing refers to, are bounded.
constexpr size_t kManySnapshotsInUse = 32;
/// After a rewrite that failed (there may be no room for it) so many ordinary snapshots come first:
/// without any, the log would grow for ever.
constexpr uint32_t kSnapshotsBetweenRewrites = 8;

size_t snapshots_in(const SnapshotMetadata& metadata) {
  std::set<uint32_t> ids;
  for (const SnapshotFilePlace& file : metadata.files) ids.insert(file.snapshot);
  return ids.size();
}

}  // namespace

/// Fills in what all tasks have in common.
Result<void> Coordinator::glean(GleanTask task) {
  const auto id = durable_->take_snapshot_id();
  if (!id) return std::unexpected(id.error());
  task.snapshot = *id;
  task.cluster_uuid = durable_->data_uuid();
  task.base = durable_->snapshot();
  const auto metadata = gleaner_->run(task);
  if (!metadata) return std::unexpected(metadata.error());
  const auto stored = durable_->store_snapshot(*metadata);
  gleaner_->keep(*id);
  if (!stored) return stored;
  // Relaxed: for people, and for this thread.
  snapshot_epoch_.store(metadata->epoch, std::memory_order_relaxed);
  snapshot_.store(metadata->id, std::memory_order_relaxed);
  return {};
}

void Coordinator::start_snapshots() {
  SnapshotTakerHooks hooks;
  hooks.take = [this] { return take_snapshot(); };
  hooks.has_news = [this] { return has_news(); };
  hooks.log_bytes = [this] {
    uint64_t most = 0;
    for (size_t node = 0; node < metrics_.size(); ++node) {
      uint64_t bytes = 0;
      for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
        bytes += metrics_[node]->loggers[logger].written_bytes.get();
      }
      most = std::max(most, bytes);
    }
    return most;
  };
  hooks.lacks_pages = [this] { return lacks_pages(); };
  hooks.has_freed = [this] { return has_freed_pages_; };
  // Relaxed: says only whether to wait.
  control_->pages_come_back.store(1, std::memory_order_relaxed);
  taker_ = std::make_unique<SnapshotTaker>(config_.gleaner, std::move(hooks), logger_);
  taker_->start();
}

/// A commit of an epoch behind the newest snapshot is durable.
bool Coordinator::has_news() const {
  const uint64_t newest = snapshot_epoch_.load(std::memory_order_relaxed);
  // Acquire: as for whoever answers clients. Markers are wanted for epochs with commits alone
  // (R27).
  return control_->epochs.durable.load(std::memory_order_acquire) > newest &&
         control_->epochs.marker_wanted.load(std::memory_order_acquire) > newest;
}

Result<uint32_t> Coordinator::take_snapshot() {
  if (state() != ClusterState::running) {
    return make_error(ExitCode::not_running, "the cluster stops");
  }
  if (has_news()) {
    // The epoch first: a storage that has commits of it was created before.
    const uint64_t epoch = control_->epochs.durable.load(std::memory_order_acquire);
    const bool rewrites = is_rewrite_due();
    has_freed_pages_ = false;
    const auto taken = glean({.epoch = epoch,
                              .streams = durable_->live_streams(epoch),
                              .storages = ask_ddl_for_storages(),
                              .rewrites = rewrites,
                              .has_volatile_pages = true});
    if (rewrites && !taken) snapshots_until_rewrite_ = kSnapshotsBetweenRewrites;
    if (taken) install_newest();
    if (!has_freed_pages_ && lacks_pages()) tell_in_vain();
    if (!taken) return std::unexpected(taken.error());
    if (const auto forgotten = forget_unneeded(); !forgotten) {
      logger_->warn("files that nothing needs stay for now: {}", forgotten.error().message);
    }
  }
  return snapshot_.load(std::memory_order_relaxed);
}

bool Coordinator::is_rewrite_due() {
  if (snapshots_until_rewrite_ != 0) {
    --snapshots_until_rewrite_;
    return false;
  }
  return durable_->snapshot() && snapshots_in(*durable_->snapshot()) >= kManySnapshotsInUse;
}

/// The catalog is the DDL thread's. Storages that are being dropped count until that is durable.
std::vector<StorageToGlean> Coordinator::ask_ddl_for_storages() {
  std::promise<std::vector<StorageToGlean>> promise;
  auto answer = promise.get_future();
  give_to_ddl([&] { promise.set_value(storages_to_glean()); });
  return answer.get();
}

/// Closes files, then deletes them. REQUIRES: no run of the gleaner is under way.
Result<void> Coordinator::forget_unneeded() {
  std::vector<SnapshotFilePlace> places;
  std::set<uint32_t> in_use;
  const auto keep = [&](const SnapshotMetadata& snapshot) {
    in_use.insert(snapshot.id);
    places.insert(places.end(), snapshot.files.begin(), snapshot.files.end());
  };
  for (const SnapshotMetadata& kept : kept_.all()) keep(kept);
  if (durable_->snapshot()) keep(*durable_->snapshot());
  if (const auto opened = open_on_nodes(config_, call_node_, places); !opened) return opened;
  const auto deleted = durable_->delete_unneeded(in_use);
  if (!deleted) return std::unexpected(deleted.error());
  if (*deleted != 0) logger_->info("{} files of logs and snapshots deleted", *deleted);
  return {};
}

void Coordinator::request_snapshot(const ControlReply& reply) {
  if (state() != ClusterState::running) {
    return reply(make_error(ExitCode::not_running,
                            "snapshot.take: the cluster does not run: try "
                            "again when it does"));
  }
  if (taker_ == nullptr) {
    return reply(make_error(ExitCode::failed,
                            "snapshot.take: nothing is durable here: snapshots "
                            "need durability.mode \"durable\""));
  }
  taker_->request([this, reply](const Result<uint32_t>& taken) {
    if (!taken) return reply(std::unexpected(taken.error()));
    reply(Json{{"id", *taken}, {"epoch", snapshot_epoch_.load(std::memory_order_relaxed)}});
  });
}

Json Coordinator::snapshot_status() const {
  // Relaxed: for people.
  return {{"newest", snapshot_.load(std::memory_order_relaxed)},
          {"epoch", snapshot_epoch_.load(std::memory_order_relaxed)},
          {"install", install_status()},
          {"run", gleaner_ != nullptr ? gleaner_->status() : Json::object()}};
}

}  // namespace atolldb
