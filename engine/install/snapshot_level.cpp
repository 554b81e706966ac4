#include "engine/install/snapshot_level.h"

#include <algorithm>

#include "engine/format/stand_in.h"
#include "engine/format/tree_page.h"

namespace atolldb {

namespace {

Status collect_level(WorkerContext& worker, SnapshotPointer pointer, uint32_t level,
                     const SliceRange& range, SnapshotLevel& found) {
  // No page below an unreadable page can replace a volatile page (R56).
  if (is_stand_in(pointer)) {
    found.is_damaged = true;
    return Status::ok;
  }
  const PageHeader* header = nullptr;
  const Status status = worker.snapshot_page(pointer, header);
  if (status == Status::snapshot_unreadable) {
    found.is_damaged = true;
    found.unreadable.push_back(pointer);
    return Status::ok;
  }
  if (status != Status::ok) return status;
  if (header->level < level) return Status::ok;
  const auto* page = reinterpret_cast<const InteriorPage*>(header);
  if (header->level == level) {
    found.pages.push_back({range_of(*page), pointer});
    return Status::ok;
  }
  // Copies the children, because the page is valid only until the next page is requested.
  std::vector<SnapshotLevelPage> children;
  const uint32_t count = header->version().count();
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    const SliceRange child{page->separators[i], is_last ? page->high : page->separators[i + 1],
                           is_last && page->high_is_end()};
    if (!overlap(child, range)) continue;
    children.push_back(
        {child, SnapshotPointer(page->children[i].snapshot_word.load(std::memory_order_relaxed))});
  }
  if (header->level == level + 1) {
    for (const SnapshotLevelPage& child : children) {
      found.is_damaged = found.is_damaged || is_stand_in(child.page);
      found.pages.push_back(child);
    }
    return Status::ok;
  }
  for (const SnapshotLevelPage& child : children) {
    const Status below = collect_level(worker, child.page, level, range, found);
    if (below != Status::ok) return below;
  }
  return Status::ok;
}

}  // namespace

Status find_snapshot_level(WorkerContext& worker, SnapshotPointer root, uint32_t level,
                           const SliceRange& range, SnapshotLevel& found) {
  found.pages.clear();
  found.unreadable.clear();
  found.is_damaged = false;
  if (root.is_null()) return Status::ok;
  const Status status = collect_level(worker, root, level, range, found);
  worker.leave_snapshots();
  return status;
}

std::span<const SnapshotLevelPage> pages_that_fill(const std::vector<SnapshotLevelPage>& pages,
                                                   const SliceRange& range) {
  const auto first = std::ranges::lower_bound(
      pages, range.low, {}, [](const SnapshotLevelPage& page) { return page.range.low; });
  if (first == pages.end() || first->range.low != range.low) return {};
  uint64_t reached = range.low;
  for (auto at = first; at != pages.end(); ++at) {
    if (at->range.low != reached || at->page.is_null() || is_stand_in(at->page)) return {};
    const bool ends = range.high_is_end ? at->range.high_is_end
                                        : !at->range.high_is_end && at->range.high == range.high;
    if (ends) return at == first ? std::span<const SnapshotLevelPage>() : std::span(first, at + 1);
    if (at->range.high_is_end) return {};
    reached = at->range.high;
  }
  return {};
}

SnapshotPointer page_of_range(const std::vector<SnapshotLevelPage>& pages,
                              const SliceRange& range) {
  const auto found = std::ranges::lower_bound(
      pages, range.low, {}, [](const SnapshotLevelPage& page) { return page.range.low; });
  if (found == pages.end() || found->range.low != range.low ||
      found->range.high_is_end != range.high_is_end ||
      (!range.high_is_end && found->range.high != range.high)) {
    return {};
  }
  return found->page;
}

}  // namespace atolldb
