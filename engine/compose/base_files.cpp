#include "engine/compose/base_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "engine/gleaner/sample_victims.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

bool has(const std::vector<uint32_t>& ascending, uint32_t snapshot) {
  return std::ranges::binary_search(ascending, snapshot);
}

/// Returns the base's live pages of the storages that still exist.
std::vector<LivePages> live_pages_left(const SnapshotMetadata& base,
                                       const SnapshotMetadata& snapshot) {
  std::vector<LivePages> left;
  std::ranges::copy_if(base.live, std::back_inserter(left), [&](const LivePages& live) {
    return std::ranges::binary_search(snapshot.storages, live.storage_id, {}, &SnapshotStorage::id);
  });
  return left;
}

/// Returns an error if pages of victims remain in use.
std::optional<Error> find_left_victim(const SnapshotPlan& plan,
                                      const std::vector<LivePages>& live_pages) {
  for (const LivePages& live : live_pages) {
    if (!has(plan.victims, live.snapshot)) continue;
    return Error{ExitCode::failed,
                 fmt::format("storage {}: {} live pages remain in the files of snapshot {} and "
                             "node {}, which were to be copied: internal error",
                             live.storage_id, live.all(), live.snapshot, live.node)};
  }
  return std::nullopt;
}

}  // namespace

std::map<uint32_t, uint64_t> mark_victims(const SnapshotMetadata& base, SnapshotPlan& plan) {
  CHECK(plan.base == base.id && plan.files == base.files);
  CHECK(std::ranges::is_sorted(plan.storages, {}, &PlannedStorage::id));
  CHECK(!plan.salvages || are_all_victims(plan));
  std::map<uint32_t, uint64_t> pages;
  const bool is_unknown = plan.salvages || std::ranges::any_of(plan.victims, [&](uint32_t id) {
                            return has(base.uncounted, id);
                          });
  for (PlannedStorage& storage : plan.storages) {
    if (storage.base_root.is_null() || !is_unknown) continue;
    storage.has_victims = true;
    storage.has_victims_below = is_tree(storage.type);
    pages[storage.id] = kUnknownVictimPages;
  }
  for (PlannedStorage& storage : plan.storages) {
    storage.has_next_layers = is_tree(storage.type) && !base.uncounted.empty();
  }
  for (const LivePages& live : base.live) {
    const auto found =
        std::ranges::lower_bound(plan.storages, live.storage_id, {}, &PlannedStorage::id);
    if (found == plan.storages.end() || found->id != live.storage_id) continue;  // dropped storage
    found->has_next_layers = found->has_next_layers || live.next_layers != 0;
    if (!has(plan.victims, live.snapshot)) continue;
    found->has_victims = true;
    found->has_victims_below = found->has_victims_below || live.next_layers != 0;
    pages[live.storage_id] += live.all();
  }
  return pages;
}

std::optional<Error> add_base_files(const SnapshotPlan& plan, const SnapshotMetadata& base,
                                    const ComposedPages& pages, SnapshotMetadata& snapshot) {
  CHECK(plan.base == base.id && plan.files == base.files && snapshot.id == plan.snapshot);
  CHECK(snapshot.live.empty() && snapshot.uncounted.empty());
  CHECK(std::ranges::is_sorted(snapshot.storages, {}, &SnapshotStorage::id));
  CHECK(std::ranges::is_sorted(plan.victims) && (plan.base != 0 || plan.victims.empty()));
  // A salvage uses no page of the base, not even a readable one.
  const bool has_base = !plan.salvages;
  auto live = live_pages_after(
      has_base ? live_pages_left(base, snapshot) : std::vector<LivePages>(),
      has_base ? base.uncounted : snapshots_of(base.files), pages.replaced, pages.written);
  std::optional<Error> wrong;
  if (!live) {
    wrong = live.error();
  } else if (!pages.is_damaged) {
    wrong = find_left_victim(plan, *live);
  }
  const bool needs_all = wrong || pages.is_damaged;
  CHECK(needs_all || live);
  std::set<std::pair<uint32_t, uint32_t>> used;  // (snapshot, node) of each file with live pages
  if (!needs_all) {
    for (const LivePages& each : *live) used.emplace(each.snapshot, each.node);
  }
  std::vector<SnapshotFilePlace> needed;
  const auto is_needed = [&](const SnapshotFilePlace& file) {
    if (has(base.uncounted, file.snapshot)) return !has(plan.victims, file.snapshot);
    return used.contains({file.snapshot, file.node});
  };
  if (has_base) {
    std::ranges::copy_if(
        base.files, std::back_inserter(needed),
        [&](const SnapshotFilePlace& file) { return needs_all || is_needed(file); });
  }
  snapshot.files.insert(snapshot.files.begin(), needed.begin(), needed.end());
  if (needs_all) {
    snapshot.uncounted = snapshots_of(snapshot.files);
    return wrong;
  }
  snapshot.live = *std::move(live);
  if (!has_base) return std::nullopt;
  std::ranges::copy_if(base.uncounted, std::back_inserter(snapshot.uncounted),
                       [&](uint32_t id) { return !has(plan.victims, id); });
  return std::nullopt;
}

}  // namespace atolldb
