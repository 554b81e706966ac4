#include "engine/mastertree/fence_map.h"

#include <sched.h>

#include <algorithm>

#include "engine/hooks/mutants.h"
#include "engine/mastertree/tree_path.h"
#include "engine/transaction/storage_handle.h"
#include "shared/base/check.h"

namespace atolldb {

// -- Fence map ------------------------------------------------------------------------------------

const FenceMap::Slot* FenceMap::find(uint32_t level, uint64_t slice) const {
  if (level >= levels_.size()) return nullptr;
  const Level& slots = levels_[level];
  const auto next = std::ranges::upper_bound(slots, slice, {}, &Slot::low);
  return next == slots.begin() ? nullptr : &*std::prev(next);
}

bool FenceMap::is_fence(uint32_t level, uint64_t slice) const {
  const Slot* slot = find(level, slice);
  return slot != nullptr && slot->low == slice;
}

bool FenceMap::may_cut(uint32_t level, uint64_t slice) const {
  for (uint32_t at = 0; at <= level && at < level_count(); ++at) {
    const Slot* slot = find(at, slice);
    if (slot != nullptr && slot->low != slice && slot->kind != Kind::below) return false;
  }
  return true;
}

bool FenceMap::next_fence(uint32_t level, uint64_t slice, uint64_t& fence) const {
  if (level >= levels_.size()) return false;
  const Level& slots = levels_[level];
  const auto next = std::ranges::upper_bound(slots, slice, {}, &Slot::low);
  if (next == slots.end()) return false;
  fence = next->low;
  return true;
}

bool FenceMap::fits(uint32_t level, const SliceRange& range) const {
  if (levels_.empty()) return true;
  const uint32_t known = std::min(level, level_count() - 1);
  const Slot* slot = find(known, range.low);
  if (slot == nullptr || slot->kind == Kind::below) return true;
  if (slot->low != range.low) return false;
  const Slot* const end = levels_[known].data() + levels_[known].size();
  // A page above the highest known level covers several slots of that level.
  const bool is_above = level > known;
  for (; slot != end && (range.high_is_end || slot->low < range.high); ++slot) {
    if (slot->kind == Kind::warm && !(slot->is_covered && (slot->has_snapshot || !is_above))) {
      return false;
    }
    if (!is_above && slot->low != range.low) return false;
  }
  return range.high_is_end ? slot == end : slot == end || slot->low == range.high;
}

void FenceMap::add(uint32_t level, const Slot& slot) {
  CHECK(level < TreePath::kMaxLevels);
  if (levels_.size() <= level) levels_.resize(level + 1);
  const auto append = [](Level& slots, const Slot& one) {
    // Ignores a fence that is not greater than the last one. Such a fence belongs to a page that
    // was split or replaced between two passes.
    if (slots.empty() || slots.back().low < one.low) slots.push_back(one);
  };
  append(levels_[level], slot);
  if (slot.kind != Kind::cold) return;
  for (uint32_t lower = 0; lower < level; ++lower) {
    append(levels_[lower], Slot{slot.low, Kind::below});
  }
}

void FenceMap::settle() {
  // If pages were split between two passes, a level may have a page that begins where no page of
  // the level below begins. Such a start is not a fence.
  for (uint32_t level = 1; level < levels_.size() && !fault::unnested_fence_map; ++level) {
    std::erase_if(levels_[level], [&](const Slot& slot) { return !is_fence(level - 1, slot.low); });
  }
  while (!levels_.empty() && levels_.back().empty()) levels_.pop_back();
  for (uint32_t level = 1; level < levels_.size(); ++level) {
    const Level& children = levels_[level - 1];
    auto child = children.begin();
    for (size_t i = 0; i < levels_[level].size(); ++i) {
      Slot& slot = levels_[level][i];
      const bool is_last = i + 1 == levels_[level].size();
      for (; child != children.end() && (is_last || child->low < levels_[level][i + 1].low);
           ++child) {
        if (child->kind == Kind::warm && !(child->has_snapshot && child->is_covered)) {
          slot.is_covered = false;
        }
      }
    }
  }
}

// -- Reading the pages ----------------------------------------------------------------------------

namespace {

constexpr uint32_t kPathsPerEpoch = 64;
constexpr uint32_t kMaxFailures = 100;

bool has_snapshot(const Link& link) {
  return link.pointer->snapshot_word.load(std::memory_order_relaxed) != 0;
}

/// Adopts the successors of children that were split or replaced, and that no descent has adopted
/// yet.
void adopt_children(WorkerContext& worker, StorageControl& storage, const Link& root,
                    const InteriorPage& page) {
  const uint32_t count = page.header.version().count();
  for (uint32_t i = 0; i < count; ++i) {
    const VolatilePointer word = page.children[i].load_acquire();
    if (word.is_null() || word.is_frozen()) continue;
    if (!worker.view().resolve(word)->version().is_moved()) continue;
    static_cast<void>(find_border(worker, storage, root, page.separators[i], Adoption::whole_way));
  }
}

/// Adds all children of a page of level 1. Returns false if the page has changed meanwhile.
bool add_borders(const InteriorPage& page, FenceMap& fence_map) {
  const PageVersion version = page.header.version();
  const ChildRanges children(page, version.count());
  std::array<FenceMap::Slot, kInteriorCapacity> slots;
  for (uint32_t i = 0; i < children.size(); ++i) {
    const DualPointer& pointer = page.children[children[i]];
    const bool is_cold = pointer.load_acquire().is_null();
    slots[i] = {children.range(i).low, is_cold ? FenceMap::Kind::cold : FenceMap::Kind::warm,
                pointer.snapshot_word.load(std::memory_order_relaxed) != 0, true};
  }
  if (page.header.version() != version) return false;
  for (uint32_t i = 0; i < children.size(); ++i) fence_map.add(0, slots[i]);
  return true;
}

/// Adds the pages on a path. Sets `seen` to the range of slices whose fences the path shows.
/// Returns false if the caller must retry.
bool add_path(const TreePath& path, FenceMap& fence_map, SliceRange& seen) {
  if (path.size == 0) {
    seen = SliceRange{};
    return true;
  }
  CHECK(path.size <= TreePath::kMaxLevels);
  for (uint32_t i = 1; i < path.size; ++i) {
    const InteriorPage& page = *path.steps[i].page;
    fence_map.add(page.header.level,
                  {page.low, FenceMap::Kind::warm, has_snapshot(path.steps[i].link), true});
  }
  const InteriorPage& last = *path.steps[path.size - 1].page;
  if (last.header.level == 1) {
    seen = range_of(last);
    return add_borders(last, fence_map);
  }
  // The path ends above the border pages, at a pointer without a volatile page.
  seen = path.range;
  fence_map.add(last.header.level - 1u, {path.range.low, FenceMap::Kind::cold});
  return true;
}

}  // namespace

Status collect_fence_map(WorkerContext& worker, StorageControl& storage,
                         std::span<const std::byte> prefix, const SliceRange& range,
                         FenceMap& fence_map) {
  CHECK(prefix.size() % 8 == 0);
  const uint32_t storage_id = storage.id;
  fence_map.clear();
  SliceRange seen;
  seen.high = range.low;
  seen.high_is_end = false;
  const auto is_done = [&] {
    return seen.high_is_end || (!range.high_is_end && seen.high >= range.high);
  };
  TreePath path;
  for (uint32_t failures = 0; !is_done();) {
    worker.enter();
    if (worker.cluster_failed()) return Status::cluster_failed;
    Link root;
    if (!is_storage_ready(storage, storage_id) || !find_layer(worker, storage, prefix, root)) break;
    if (!root.pointer->load_acquire().is_null()) fence_map.set_root();
    bool is_known = true;
    for (uint32_t i = 0; i < kPathsPerEpoch && is_known && !is_done(); ++i) {
      SliceRange next;
      is_known = reach_path(worker, storage, root, seen.high, path);
      if (is_known && path.size != 0 && path.steps[path.size - 1].page->header.level == 1) {
        adopt_children(worker, storage, root, *path.steps[path.size - 1].page);
        is_known = find_path(worker, root, seen.high, path);
      }
      is_known = is_known && add_path(path, fence_map, next);
      if (is_known) seen = next;
    }
    failures = is_known ? 0 : failures + 1;
    if (!is_known) sched_yield();
    if (failures != kMaxFailures || fault::endless_fence_map) continue;
    // After many failures, counts the range as one page. Its page was moved and cannot be adopted,
    // for instance because there are no free pages.
    failures = 0;
    static_cast<void>(find_path(worker, root, seen.high, path));
    if (path.size == 0) {
      fence_map.clear();
      break;
    }
    const uint32_t level = path.steps[path.size - 1].page->header.level - 1u;
    fence_map.add(level, {path.range.low, FenceMap::Kind::warm, false, false});
    seen = path.range;
  }
  worker.leave();
  fence_map.settle();
  return Status::ok;
}

uint64_t cut_at_or_before(WorkerContext& worker, StorageControl& storage, uint64_t slice) {
  const uint32_t storage_id = storage.id;
  worker.enter();
  TreePath path;
  const bool is_found = is_storage_ready(storage, storage_id) &&
                        reach_path(worker, storage, root_link(storage), slice, path);
  const uint64_t cut = is_found && path.size != 0 ? path.range.low : 0;
  worker.leave();
  DCHECK(cut <= slice);
  return cut;
}

}  // namespace atolldb
