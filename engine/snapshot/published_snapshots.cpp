#include "engine/snapshot/published_snapshots.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/mutants.h"

namespace atolldb {

void snapshots_in_use(NodeShared& node, std::set<uint32_t>& ids) {
  for (uint32_t ordinal = 0; ordinal < node.slot_count; ++ordinal) {
    // seq_cst: see the head of the header.
    const uint64_t id = node.slot(ordinal).snapshot.load(std::memory_order_seq_cst);
    if (id != 0) ids.insert(static_cast<uint32_t>(id));
  }
}

const PublishedSnapshots::Entry* PublishedSnapshots::find(uint32_t id) const {
  for (const Entry& entry : entries_) {
    if (entry.id.load(std::memory_order_seq_cst) == id) return &entry;
  }
  return nullptr;
}

const SnapshotView* PublishedSnapshots::use(WorkerSlot& slot, uint32_t id) const {
  for (;;) {
    const uint32_t wanted = id != 0 ? id : latest_.load(std::memory_order_seq_cst);
    if (wanted == 0) return nullptr;
    if (!mutant(Mutant::unannounced_snapshot)) {
      slot.snapshot.store(wanted, std::memory_order_seq_cst);
    }
    if (const Entry* entry = find(wanted)) return entry->view.get();
    release(slot);
    if (id != 0) return nullptr;
    // The latest one was withdrawn meanwhile: there is a later one, or none any more.
  }
}

Result<void> PublishedSnapshots::publish(std::unique_ptr<const SnapshotView> view) {
  const std::lock_guard guard(mutex_);
  collect();
  const uint32_t id = view->id();
  if (find(id) != nullptr) return {};
  // One that was withdrawn and is read still is the same: ids are never given twice (R37).
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
  const uint32_t latest = latest_.load(std::memory_order_relaxed);
  const bool is_latest = latest == 0 || find(latest)->view->epoch() <= place->view->epoch();
  // Each publishes what comes before it to those who find it: the view, then the entry.
  place->id.store(id, std::memory_order_seq_cst);
  if (is_latest) latest_.store(id, std::memory_order_seq_cst);
  return {};
}

void PublishedSnapshots::withdraw_all_but(const std::set<uint32_t>& ids) {
  const std::lock_guard guard(mutex_);
  const Entry* newest = nullptr;
  for (const Entry& entry : entries_) {
    const uint32_t id = entry.id.load(std::memory_order_relaxed);
    if (id == 0 || !ids.contains(id)) continue;
    if (newest == nullptr || newest->view->epoch() < entry.view->epoch()) newest = &entry;
  }
  // First, so that who looks for the latest finds one that stays.
  latest_.store(newest == nullptr ? 0 : newest->view->id(), std::memory_order_seq_cst);
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

/// Frees the views of withdrawn snapshots that nobody reads. Under the mutex.
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
