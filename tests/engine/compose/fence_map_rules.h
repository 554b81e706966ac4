// Bodies of tests of fence maps (`FenceMap`), which tell composers where volatile pages begin.
// While a map is collected, pages change, or cannot change for lack of free pages. A body returns
// an error text, or an empty text if all is right.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/format/tree_page.h"
#include "engine/mastertree/fence_map.h"
#include "engine/mastertree/mastertree.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// A tree of two levels whose first border page was split. Its parent cannot adopt the twins,
/// because the pool has no page left.
class UnadoptedTree {
 public:
  UnadoptedTree()
      : cluster(1, 2, {.pool_bytes = uint64_t{1} << 20, .clock = false}),
        storage(cluster.create("tree", StorageType::mastertree, 8)) {
    const Table table(Kind::tree, storage);
    const auto insert = [&](uint64_t key) {
      const Status status =
          cluster.worker(0).run([&](Transaction& txn) { return table.insert(txn, key, key); });
      CHECK(status == Status::ok);
    };
    for (uint64_t key = 0; key < 1000; ++key) insert(1000 * key);
    cluster.worker(0).context->leave();
    McsLocker& locker = cluster.worker(1).context->locker();
    CHECK(root()->header.level == 1);
    CHECK(locker.lock(root()->lock, UniversalName()) == Status::ok);
    const WorkerMetrics& metrics = cluster.metrics(0, 0);
    const uint64_t before = metrics.splits.get();
    for (uint64_t key = 1; metrics.splits.get() == before; ++key) insert(key);
    locker.unlock(root()->lock);
    cluster.worker(0).context->leave();
    for (uint32_t i = 0; i < cluster.worker_count(); ++i) {
      while (cluster.worker(i).context->pages().take() != nullptr) continue;
    }
  }

  InteriorPage* root() const {
    return reinterpret_cast<InteriorPage*>(view().resolve(storage.root.load_acquire()));
  }
  /// Returns the first slices of the root's children.
  std::vector<uint64_t> fences() const {
    const InteriorPage* page = root();
    std::vector<uint64_t> lows(page->separators, page->separators + page->header.version().count());
    std::ranges::sort(lows);
    return lows;
  }
  Status fence_map_of(FenceMap& fence_map) {
    return collect_fence_map(*cluster.worker(1).context, storage, {}, SliceRange{}, fence_map);
  }

  const ClusterView& view() const { return const_cast<TestCluster&>(cluster).view(); }
  TestCluster cluster;
  StorageControl& storage;
};

/// The pool has no page for a new parent of foster twins. The map treats the page that the twins
/// replace as one page, and knows all other pages.
inline std::string a_fence_map_ends_on_a_full_pool() {
  UnadoptedTree test;
  // A collection that ends makes fewer than 20,000 descents. At this limit the body stops the
  // cluster, which ends all waits.
  uint64_t looks = 0;
  const AtSyncPoints guard([&](SyncPoint point) {
    if (point != SyncPoint::descending || ++looks != 20'000) return;
    test.view().control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                     std::memory_order_seq_cst);
  });
  FenceMap fence_map;
  const Status status = test.fence_map_of(fence_map);
  if (status != Status::ok) return "the fence map ended with " + std::string(to_string(status));
  if (looks == 0) return "nothing was in the way";
  if (fence_map.level_count() != 1) return std::to_string(fence_map.level_count()) + " levels";
  std::vector<uint64_t> lows;
  for (const FenceMap::Slot& slot : fence_map.level(0)) lows.push_back(slot.low);
  if (lows != test.fences()) return "pages begin elsewhere";
  return fence_map.level(0)[0].is_covered ? "what moves may be used as it is" : "";
}

/// R34: a storage is dropped while its fence map is collected. `reused`: another storage has taken
/// its catalog slot by then. The collection must be given up.
inline std::string a_fence_map_of_a_dropped_storage_is_given_up(bool reused) {
  UnadoptedTree test;
  constexpr uint64_t kBefore = 40;
  uint64_t looks = 0;
  {
    const AtSyncPoints guard([&](SyncPoint point) {
      if (point != SyncPoint::descending || ++looks != kBefore) return;
      if (reused) test.storage.id += kMaxStorages;
      if (reused) return;
      test.storage.state.store(static_cast<uint32_t>(StorageState::dropping),
                               std::memory_order_seq_cst);
    });
    FenceMap fence_map;
    const Status status = test.fence_map_of(fence_map);
    if (status != Status::ok) return "the fence map ended with " + std::string(to_string(status));
  }
  if (looks < kBefore) return "nothing was in the way";
  // A few more descents are allowed: those in the begin epoch in which the storage was dropped.
  if (looks > kBefore + 16) return std::to_string(looks - kBefore) + " looks at pages that may go";
  FenceMap fence_map;
  if (reused) return "";
  static_cast<void>(test.fence_map_of(fence_map));
  if (!fence_map.is_empty()) return "a dropped storage has a fence map";
  const uint64_t cut = cut_at_or_before(*test.cluster.worker(1).context, test.storage, 900'000);
  return cut == 0 ? "" : "a dropped storage is cut";
}

/// Returns true if every page of a level begins where a page of the level below begins.
inline bool is_nested(const FenceMap& fence_map) {
  for (uint32_t level = 1; level < fence_map.level_count(); ++level) {
    for (const FenceMap::Slot& slot : fence_map.level(level)) {
      if (!fence_map.is_fence(level - 1, slot.low)) return false;
    }
  }
  return true;
}

/// R44: a collection finds one page that begins at 100. Then this page and a page above it are
/// split at 150, and the collection finds the new page above. The map must be nested.
inline std::string fence_maps_are_nested() {
  constexpr auto kWarm = FenceMap::Kind::warm;
  FenceMap fence_map;
  fence_map.add(1, {0, kWarm});
  for (const uint64_t low : {0u, 50u, 100u}) fence_map.add(0, {low, kWarm});
  fence_map.add(1, {150, kWarm});
  for (const uint64_t low : {200u, 250u}) fence_map.add(0, {low, kWarm});
  fence_map.settle();
  if (!is_nested(fence_map)) return "a page begins where none begins below it";
  return fence_map.is_fence(0, 250) && fence_map.is_fence(1, 0) ? "" : "a fence is missing";
}

}  // namespace atolldb::test
