#include "engine/snapshot/published_snapshots.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/hooks/mutants.h"
#include "shared/base/check.h"

namespace atolldb {

void snapshots_in_use(NodeShared& node, std::set<uint32_t>& ids) {
  for (uint32_t ordinal = 0; ordinal < node.slot_count; ++ordinal) {
    // seq_cst: if a worker stores an id after this load, it searches the table even later. Then it
    // does not find a snapshot that was withdrawn before this load.
    const uint64_t id = node.slot(ordinal).snapshot.load(std::memory_order_seq_cst);
    if (id != 0) ids.insert(static_cast<uint32_t>(id));
  }
}

const PublishedSnapshots::Entry* PublishedSnapshots::find(uint32_t id) const {
  DCHECK(id != 0);
  for (const Entry& entry : entries_) {
    if (entry.id.load(std::memory_order_seq_cst) == id) return &entry;
  }
  return nullptr;
}

/// Returns the newest snapshot in this node's table, without the cluster's word `newest_`. Only the
/// mutant newest_snapshot_of_node uses this function.
uint32_t PublishedSnapshots::newest_of_own() const {
  uint32_t newest = 0;
  for (const Entry& entry : entries_) {
    newest = std::max(newest, entry.id.load(std::memory_order_seq_cst));
  }
  return newest;
}

const SnapshotView* PublishedSnapshots::use(WorkerSlot& slot, uint32_t id) const {
  uint32_t missed = 0;
  for (;;) {
    uint32_t wanted = id;
    if (id == 0) {
      // seq_cst pairs with the coordinator's store, which follows the last node's `publish`.
      wanted = fault::newest_snapshot_of_node ? newest_of_own()
                                              : newest_->load(std::memory_order_seq_cst);
    }
    // If the table lacks the snapshot, the loop loads `newest_` once more. If the snapshot was
    // withdrawn meanwhile, `newest_` names a newer one now.
    if (wanted == 0 || wanted == missed) return nullptr;
    if (!fault::unannounced_snapshot) {
      slot.snapshot.store(wanted, std::memory_order_seq_cst);
    }
    if (const Entry* entry = find(wanted)) return entry->view.get();
    release(slot);
    if (id != 0) return nullptr;
    missed = wanted;
  }
}

Result<void> PublishedSnapshots::publish(std::unique_ptr<const SnapshotView> view) {
  CHECK(view != nullptr);
  const std::lock_guard guard(mutex_);
  collect();
  const uint32_t id = view->id();
  if (find(id) != nullptr) return {};
  // A withdrawn snapshot keeps its entry while a worker reads it. An entry with this id is the same
  // snapshot, because ids are never reused (R37), so it is used again.
  auto place = std::ranges::find_if(entries_, [id](const Entry& entry) {
    return entry.view != nullptr && entry.view->id() == id;
  });
  if (place == entries_.end()) {
    place = std::ranges::find_if(entries_, [](const Entry& entry) { return !entry.view; });
  }
  if (place == entries_.end()) {
    return make_error(ExitCode::resources,
                      "snapshot " + std::to_string(id) + ": transactions may begin with " +
                          std::to_string(kMaxSnapshots) +
                          " snapshots at most, those included that are still read: unpin some");
  }
  if (place->view == nullptr) place->view = std::move(view);
  CHECK(place->view->id() == id && place->id.load(std::memory_order_relaxed) == 0);
  // From here on workers find the entry and its view (seq_cst is also a release).
  place->id.store(id, std::memory_order_seq_cst);
  return {};
}

void PublishedSnapshots::withdraw_all_but(const std::set<uint32_t>& ids) {
  const std::lock_guard guard(mutex_);
  for (Entry& entry : entries_) {
    if (ids.contains(entry.id.load(std::memory_order_relaxed))) continue;
    entry.id.store(0, std::memory_order_seq_cst);
  }
  collect();
}

std::set<uint32_t> PublishedSnapshots::ids() const {
  const std::lock_guard guard(mutex_);
  std::set<uint32_t> all;
  for (const Entry& entry : entries_) all.insert(entry.id.load(std::memory_order_relaxed));
  all.erase(0);
  return all;
}

/// Frees the views of withdrawn snapshots that no worker reads. REQUIRES: the mutex is held.
void PublishedSnapshots::collect() {
  std::set<uint32_t> in_use;
  snapshots_in_use(*node_, in_use);
  for (Entry& entry : entries_) {
    const bool is_withdrawn =
        entry.view != nullptr && entry.id.load(std::memory_order_relaxed) == 0;
    if (is_withdrawn && !in_use.contains(entry.view->id())) entry.view.reset();
  }
}

}  // namespace atolldb
