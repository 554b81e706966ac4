// Snapshots of a running cluster (R36, R37, R38). They bound the log that recovery has to glean.
// They allow the deletion of old logs and of volatile pages (coordinator_install.cpp). Transactions
// with snapshot isolation read them (R18).
#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "coordinator/coordinator.h"
#include "engine/hooks/mutants.h"
#include "engine/snapshot/published_snapshots.h"
#include "shared/base/try.h"
#include "shared/memory/dirty_epoch.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// If the base has files of this many snapshots, the next run rewrites all pages into new files, if
/// there is room. This bounds the number of files, and the space of pages that nothing refers to.
constexpr size_t kManySnapshotsInUse = 32;
/// After a failed rewrite (there may be no room for it) this many ordinary snapshots come first.
/// Without them the log would grow without bound.
constexpr uint32_t kSnapshotsBetweenRewrites = 8;

size_t snapshots_in(const SnapshotMetadata& metadata) {
  std::set<uint32_t> ids;
  for (const SnapshotFilePlace& file : metadata.files) ids.insert(file.snapshot);
  return ids.size();
}

}  // namespace

Result<void> Coordinator::glean(GleanTask task) {
  const auto begun = std::chrono::steady_clock::now();
  // Relaxed: metrics.
  snapshot_metrics_.is_taking.store(true, std::memory_order_relaxed);
  const auto gleaned = glean_and_store(std::move(task));
  snapshot_metrics_.is_taking.store(false, std::memory_order_relaxed);
  (gleaned ? snapshot_metrics_.taken : snapshot_metrics_.failed).add();
  if (!gleaned) return gleaned;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
  snapshot_metrics_.duration_us.store(static_cast<uint64_t>(took.count()),
                                      std::memory_order_relaxed);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  snapshot_metrics_.taken_at_s.store(static_cast<uint64_t>(seconds), std::memory_order_relaxed);
  return {};
}

/// Fills in the members that all tasks have in common.
Result<void> Coordinator::glean_and_store(GleanTask task) {
  ATOLL_ASSIGN(const auto id, durable_->take_snapshot_id());
  task.snapshot = id;
  task.cluster_uuid = durable_->data_uuid();
  task.base = durable_->snapshot();
  ATOLL_ASSIGN(const auto metadata, gleaner_->run(task));
  Result<void> stored;
  if (task.salvages) {
    // The next attempt finds no damage in the new snapshot.
    const auto reported = durable_->report_salvage(salvaged());
    if (!reported) stored = std::unexpected(reported.error());
  }
  if (stored) stored = durable_->store_snapshot(metadata);
  gleaner_->keep(id);
  if (!stored) return stored;
  note_newest(metadata);
  return {};
}

void Coordinator::note_newest(const SnapshotMetadata& snapshot) {
  // Relaxed: for display, and for this thread itself.
  snapshot_epoch_.store(snapshot.epoch, std::memory_order_relaxed);
  snapshot_.store(snapshot.id, std::memory_order_relaxed);
  uint64_t pages_stored = 0;
  uint64_t pages_written = 0;
  for (const SnapshotFilePlace& file : snapshot.files) {
    pages_stored += file.page_count;
    if (file.snapshot == snapshot.id) pages_written += file.page_count;
  }
  SnapshotMetrics& metrics = snapshot_metrics_;
  metrics.id.store(snapshot.id, std::memory_order_relaxed);
  metrics.epoch.store(snapshot.epoch, std::memory_order_relaxed);
  metrics.pages_written.store(pages_written, std::memory_order_relaxed);
  metrics.files.store(snapshot.files.size(), std::memory_order_relaxed);
  metrics.pages_stored.store(pages_stored, std::memory_order_relaxed);
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
  hooks.lacks_log_files = [this] { return lacks_log_files(); };
  hooks.lacks_pages = [this] { return lacks_pages(); };
  hooks.has_freed = [this] { return has_freed_pages_; };
  hooks.is_first_awaited = [this] { return is_first_snapshot_awaited(); };
  // Relaxed: the word only says whether to wait.
  control_->pages_come_back.store(1, std::memory_order_relaxed);
  taker_ = std::make_unique<SnapshotTaker>(config_.gleaner, std::move(hooks), logger_);
  taker_->start();
}

/// Returns whether a commit after the newest snapshot's epoch is durable.
bool Coordinator::has_news() const {
  const uint64_t newest = snapshot_epoch_.load(std::memory_order_relaxed);
  // Acquire: as for the thread that answers clients. `durable` alone is not enough, because a
  // closing marker also makes epochs without commits durable (R51).
  return control_->epochs.durable.load(std::memory_order_acquire) > newest &&
         dirty_epoch(nodes_) > newest;
}

bool Coordinator::is_first_snapshot_awaited() const {
  // Relaxed: the snapshot taker polls these words, so it sees a change at the next poll.
  return snapshot_.load(std::memory_order_relaxed) == 0 &&
         control_->snapshot_requests.load(std::memory_order_relaxed) !=
             control_->snapshot_answered.load(std::memory_order_relaxed);
}

Result<uint32_t> Coordinator::take_snapshot() {
  if (state() != ClusterState::running) {
    return make_error(ExitCode::not_running, "the cluster stops");
  }
  const bool has_none = snapshot_.load(std::memory_order_relaxed) == 0;
  if (has_none) {
    // The first snapshot holds everything that is committed: its requester may not know what is
    // durable.
    constexpr std::chrono::milliseconds kPatience{5'000};
    wait_until_durable(latest_dirty_epoch(nodes_), kPatience);
  }
  if (has_news()) {
    const uint32_t requests = control_->snapshot_requests.load(std::memory_order_relaxed);
    const auto taken = take_new_snapshot();
    // Release: a thread that sees the attempt over also sees what the attempt published.
    control_->snapshot_answered.store(requests, std::memory_order_release);
    wake(control_->snapshot_answered, kWakeAll);
    if (!taken) return std::unexpected(taken.error());
  } else if (has_none) {
    return make_error(ExitCode::failed,
                      "snapshot.take: nothing has been committed yet: there is nothing to take a "
                      "snapshot of: transactions that read a snapshot read the empty database "
                      "until then: commit something first");
  }
  return snapshot_.load(std::memory_order_relaxed);
}

Result<void> Coordinator::take_new_snapshot() {
  // The epoch is loaded first: a storage with commits of this epoch was created before. The epoch
  // is durable, because a crash can undo commits of a later one (R36).
  const EpochBlock& epochs = control_->epochs;
  const uint64_t epoch = mutant(Mutant::snapshot_epoch_from_current)
                             ? epochs.current.load(std::memory_order_acquire)
                             : epochs.durable.load(std::memory_order_acquire);
  // Then the run reserves no room, as in a recovery: only a snapshot allows the deletion of log
  // files.
  const bool is_last_resort = lacks_log_files();
  const bool rewrites = !is_last_resort && is_rewrite_due();
  has_freed_pages_ = false;
  const auto taken = glean({.epoch = epoch,
                            .streams = durable_->live_streams(epoch),
                            .storages = ask_ddl_for_storages(),
                            .rewrites = rewrites,
                            .disk_reserve = is_last_resort ? 0 : disk_reserve(config_),
                            .has_volatile_pages = true});
  if (rewrites && !taken) snapshots_until_rewrite_ = kSnapshotsBetweenRewrites;
  // Unreadable pages (R56) made this rewrite keep the older files. Another rewrite soon afterwards
  // saves nothing.
  if (rewrites && taken && is_rewrite_due()) snapshots_until_rewrite_ = kManySnapshotsInUse;
  if (taken) install_newest();
  if (!has_freed_pages_ && lacks_pages()) tell_in_vain();
  if (!taken) return taken;
  if (const auto forgotten = forget_unneeded(); !forgotten) {
    logger_->warn("files that nothing needs stay for now: {}", forgotten.error().message);
  }
  if (!lacks_log_files()) rebuild_ballast();
  return {};
}

bool Coordinator::lacks_log_files() const {
  for (size_t node = 0; node < metrics_.size(); ++node) {
    for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
      // Relaxed: the logger sets the word again, and this function is called again.
      if (metrics_[node]->loggers[logger].lacks_next_file.load(std::memory_order_relaxed) != 0) {
        return true;
      }
    }
  }
  return false;
}

bool Coordinator::is_rewrite_due() {
  if (snapshots_until_rewrite_ != 0) {
    --snapshots_until_rewrite_;
    return false;
  }
  return durable_->snapshot() && snapshots_in(*durable_->snapshot()) >= kManySnapshotsInUse;
}

/// Asks the DDL thread, the only writer of the catalog. A storage that is being dropped counts
/// until its drop is durable.
std::vector<StorageToGlean> Coordinator::ask_ddl_for_storages() {
  std::promise<std::vector<StorageToGlean>> promise;
  auto answer = promise.get_future();
  ddl_thread_.give([&] { promise.set_value(storages_to_glean()); });
  return answer.get();
}

Result<void> Coordinator::offer_pinned(uint32_t id) {
  ATOLL_ASSIGN(auto metadata,
               read_snapshot_metadata(durable_->files(), config_.cluster.data_dir, id));
  offered_.emplace(id, std::move(metadata));
  const auto opened = open_readable();
  // Some nodes may have opened the files. The next call that succeeds closes them.
  if (!opened) offered_.erase(id);
  return opened;
}

std::set<uint32_t> Coordinator::offer_pins() {
  std::set<uint32_t> good;
  std::map<uint32_t, std::string> unreadable;
  for (const PinnedSnapshot& pin : durable_->pinned()) {
    if (!offered_.contains(pin.id) && !unreadable.contains(pin.id)) {
      const auto offered = offer_pinned(pin.id);
      if (!offered) unreadable[pin.id] = offered.error().message;
    }
    if (!unreadable.contains(pin.id)) good.insert(pin.id);
  }
  const std::lock_guard guard(mutex_);
  for (const auto& [id, reason] : unreadable) {
    if (unreadable_pins_.contains(id)) continue;  // logged before
    logger_->error("snapshot {} is pinned and cannot be read: no transaction can begin with it: {}",
                   id, reason);
  }
  unreadable_pins_ = std::move(unreadable);
  return good;
}

/// Publishes the newest snapshot, and the pinned ones that can be read, to the transactions of all
/// nodes.
Result<void> Coordinator::publish_to_transactions() {
  if (!durable_->snapshot()) return {};
  const SnapshotMetadata& newest = *durable_->snapshot();
  offered_.try_emplace(newest.id, newest);
  ATOLL_TRY(open_readable());
  std::set<uint32_t> kept = offer_pins();
  kept.insert(newest.id);
  if (mutant(Mutant::newest_before_published)) make_newest(newest.id);
  for (const uint32_t id : kept) {
    ATOLL_TRY(publish_on_nodes(config_, call_node_, offered_.at(id)));
  }
  make_newest(newest.id);
  // Withdraws the others after that, so that a published snapshot exists at any time.
  ATOLL_TRY(withdraw_on_nodes(config_, call_node_, kept));
  for (NodeShared* node : nodes_) snapshots_in_use(*node, kept);
  std::erase_if(offered_, [&](const auto& offer) { return !kept.contains(offer.first); });
  return {};
}

/// Sets the newest snapshot. REQUIRES: all nodes have published it, because each of them must have
/// it from now on (R61).
void Coordinator::make_newest(uint32_t id) {
  // seq_cst pairs with PublishedSnapshots::use, and precedes the withdrawal of other snapshots.
  control_->readable_snapshot.store(id, std::memory_order_seq_cst);
}

/// Returns the files that volatile pages or transactions may refer to.
std::vector<SnapshotFilePlace> Coordinator::readable_places() const {
  std::vector<SnapshotFilePlace> places;
  for (const SnapshotMetadata& kept : kept_.all()) {
    places.insert(places.end(), kept.files.begin(), kept.files.end());
  }
  for (const auto& [id, offer] : offered_) {
    places.insert(places.end(), offer.files.begin(), offer.files.end());
  }
  return places;
}

Result<void> Coordinator::open_readable(const std::vector<SnapshotFilePlace>& more) {
  std::vector<SnapshotFilePlace> places = readable_places();
  places.insert(places.end(), more.begin(), more.end());
  return open_on_nodes(config_, call_node_, places, durable_->kept_places());
}

/// Publishes snapshots to transactions, closes the files that nothing needs, then deletes them.
/// REQUIRES: no run of the gleaner is under way.
Result<void> Coordinator::forget_unneeded() {
  ATOLL_TRY(publish_to_transactions());
  ATOLL_TRY(open_readable());
  const auto deleted = durable_->delete_unneeded(ids_in_use());
  if (!deleted) return std::unexpected(deleted.error());
  if (*deleted != 0) logger_->info("{} files of logs and snapshots deleted", *deleted);
  return {};
}

void Coordinator::request_snapshot(const ControlReply& reply) {
  if (const auto runs = check_runs("snapshot.take"); !runs) {
    return reply(std::unexpected(runs.error()));
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

Json Coordinator::unreadable_pins() const {
  Json list = Json::array();
  const std::lock_guard guard(mutex_);
  for (const auto& [id, reason] : unreadable_pins_)
    list.push_back({{"id", id}, {"reason", reason}});
  return list;
}

Json Coordinator::snapshot_status() const {
  // Relaxed: for display.
  return {{"newest", snapshot_.load(std::memory_order_relaxed)},
          {"epoch", snapshot_epoch_.load(std::memory_order_relaxed)},
          {"install", install_status()},
          {"unreadable_pins", unreadable_pins()},
          {"fallback", durable_ != nullptr ? durable_->fallback() : std::string()},
          {"run", gleaner_ != nullptr ? gleaner_->status() : Json::object()}};
}

}  // namespace atolldb
