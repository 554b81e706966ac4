// Publication of snapshots to transactions (R18, R61), and deletion of the files that nothing needs
// (R38).
#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "coordinator/snapshots/snapshot_manager.h"
#include "engine/hooks/mutants.h"
#include "engine/snapshot/published_snapshots.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Lists each file once. Snapshots share most of their files, and a message has a limited size.
Json list_places(std::vector<SnapshotFilePlace> files) {
  const auto place_of = [](const SnapshotFilePlace& place) {
    return std::tuple(place.snapshot, place.node, std::string_view(place.directory));
  };
  std::ranges::sort(files, {}, place_of);
  const auto repeated = std::ranges::unique(files, {}, place_of);
  files.erase(repeated.begin(), repeated.end());
  Json list = Json::array();
  for (const SnapshotFilePlace& place : files) {
    list.push_back({{"snapshot", place.snapshot},
                    {"node", place.node},
                    {"directory", place.directory},
                    {"page_count", place.page_count}});
  }
  return list;
}

}  // namespace

/// Publishes the newest snapshot, and the pinned ones that can be read, to the transactions of all
/// nodes.
Result<void> SnapshotManager::publish_to_transactions() {
  CHECK(is_own_thread());
  if (!durable_->snapshot()) return {};
  const SnapshotMetadata& newest = *durable_->snapshot();
  offered_.try_emplace(newest.id, newest);
  ATOLL_TRY(open_readable());
  std::set<uint32_t> kept = offer_pins();
  record_backup_pins();
  kept.insert(newest.id);
  if (fault::newest_before_published) make_newest(newest.id);
  for (const uint32_t id : kept) {
    ATOLL_TRY(publish_on_nodes(offered_.at(id)));
  }
  make_newest(newest.id);
  // The other snapshots are withdrawn last, so that a published snapshot exists at any time.
  ATOLL_TRY(withdraw_on_nodes(kept));
  for (NodeShared* node : nodes_) snapshots_in_use(*node, kept);
  std::erase_if(offered_, [&](const auto& offer) { return !kept.contains(offer.first); });
  CHECK(offered_.contains(newest.id));
  return {};
}

/// Sets the newest snapshot in the control segment. REQUIRES: all nodes have published the
/// snapshot, because transactions may request it from now on (R61).
void SnapshotManager::make_newest(uint32_t id) {
  // `id` is 0 if a recovery could not publish a snapshot. Transactions then cannot read any
  // snapshot until the recovery ends.
  CHECK(id == 0 || offered_.contains(id));
  // seq_cst pairs with PublishedSnapshots::use, and precedes the withdrawal of other snapshots.
  control_.readable_snapshot.store(id, std::memory_order_seq_cst);
}

Result<void> SnapshotManager::publish_on_nodes(const SnapshotMetadata& snapshot) {
  Json roots = Json::array();
  for (const SnapshotStorage& storage : snapshot.storages) {
    const uint64_t root = storage.root.is_null() ? 0 : storage.root.word();
    roots.push_back(Json::array({storage.id, root}));
  }
  const Json body = {{"id", snapshot.id}, {"epoch", snapshot.epoch}, {"roots", std::move(roots)}};
  return ask_all_nodes(config_, call_node_, ControlOperation::snapshot_publish, body);
}

Result<void> SnapshotManager::withdraw_on_nodes(const std::set<uint32_t>& keep) {
  return ask_all_nodes(config_, call_node_, ControlOperation::snapshot_withdraw, {{"keep", keep}});
}

Result<void> SnapshotManager::offer_pinned(uint32_t id) {
  ATOLL_ASSIGN(auto metadata,
               read_snapshot_metadata(durable_->files(), config_.cluster.data_dir, id));
  offered_.emplace(id, std::move(metadata));
  const auto opened = open_readable();
  // After an error some nodes may have opened the files. The next successful call of open_readable
  // closes them.
  if (!opened) offered_.erase(id);
  return opened;
}

std::set<uint32_t> SnapshotManager::offer_pins() {
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
    if (unreadable_pins_.contains(id)) continue;  // this was logged before
    logger_->error("snapshot {} is pinned and cannot be read: no transaction can begin with it: {}",
                   id, reason);
  }
  unreadable_pins_ = std::move(unreadable);
  return good;
}

/// Returns the files that volatile pages or transactions may refer to.
std::vector<SnapshotFilePlace> SnapshotManager::readable_places() const {
  std::vector<SnapshotFilePlace> places;
  for (const SnapshotMetadata& kept : kept_.all()) {
    places.insert(places.end(), kept.files.begin(), kept.files.end());
  }
  for (const auto& [id, offer] : offered_) {
    places.insert(places.end(), offer.files.begin(), offer.files.end());
  }
  return places;
}

Result<void> SnapshotManager::open_readable(const std::vector<SnapshotFilePlace>& more) {
  CHECK(is_own_thread());
  std::vector<SnapshotFilePlace> places = readable_places();
  places.insert(places.end(), more.begin(), more.end());
  const Json body = {{"places", list_places(std::move(places))},
                     {"kept", list_places(durable_->kept_places())}};
  return ask_all_nodes(config_, call_node_, ControlOperation::snapshot_open, body);
}

/// Lets all nodes close the files that nothing needs, then deletes them. REQUIRES: no job is under
/// way.
Result<void> SnapshotManager::delete_obsolete_files() {
  CHECK(next_ == nullptr);
  ATOLL_TRY(open_readable());
  ATOLL_ASSIGN(const size_t deleted, durable_->delete_unneeded(ids_in_use()));
  if (deleted != 0) logger_->info("{} files of logs and snapshots deleted", deleted);
  return {};
}

Result<void> SnapshotManager::publish_and_delete() {
  const Result<void> published = publish_to_transactions();
  // While the next job is under way, the files remain until its savepoint (begin_next).
  const Result<void> deleted = published && next_ == nullptr ? delete_obsolete_files() : published;
  if (deleted) return {};
  const uint32_t newest = durable_->snapshot() ? durable_->snapshot()->id : 0;
  // Relaxed: only this thread stores the word.
  const uint32_t readable = control_.readable_snapshot.load(std::memory_order_relaxed);
  CHECK(readable <= newest);
  if (readable == newest) {
    logger_->warn("obsolete files remain until the next snapshot or start: {}",
                  deleted.error().message);
  } else if (readable != 0) {
    logger_->error(
        "snapshot {} is not published: until the next snapshot or start, transactions read the "
        "older snapshot {}, and obsolete files remain: {}",
        newest, readable, deleted.error().message);
  } else {
    logger_->error(
        "snapshot {} is not published: until the next snapshot or start, no transaction can read "
        "a snapshot, and obsolete files remain: {}",
        newest, deleted.error().message);
  }
  return deleted;
}

std::set<uint32_t> SnapshotManager::ids_in_use() const {
  std::set<uint32_t> ids;
  for (const SnapshotMetadata& kept : kept_.all()) ids.insert(kept.id);
  if (durable_->snapshot()) ids.insert(durable_->snapshot()->id);
  for (const auto& [id, offer] : offered_) ids.insert(id);
  return ids;
}

}  // namespace atolldb
