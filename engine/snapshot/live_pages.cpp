#include "engine/snapshot/live_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/format/stand_in.h"
#include "shared/base/check.h"

namespace atolldb {

void PageCounts::add(uint32_t storage_id, SnapshotPointer page, uint32_t layer) {
  DCHECK(!page.is_null() && !is_stand_in(page));
  LivePages& counts = counts_[{storage_id, page.snapshot(), page.node()}];
  counts.storage_id = storage_id;
  counts.snapshot = page.snapshot();
  counts.node = page.node();
  ++(layer == 0 ? counts.first_layer : counts.next_layers);
}

void PageCounts::add(const std::vector<LivePages>& pages) {
  for (const LivePages& more : pages) {
    LivePages& counts = counts_.try_emplace(live_order(more), LivePages{}).first->second;
    const uint64_t first_layer = counts.first_layer + more.first_layer;
    const uint64_t next_layers = counts.next_layers + more.next_layers;
    counts = more;
    counts.first_layer = first_layer;
    counts.next_layers = next_layers;
  }
}

std::vector<LivePages> PageCounts::list() const {
  std::vector<LivePages> all;
  for (const auto& [place, counts] : counts_) {
    DCHECK(place == live_order(counts));
    if (counts.all() != 0) all.push_back(counts);
  }
  return all;
}

Result<std::vector<LivePages>> live_pages_after(const std::vector<LivePages>& base,
                                                const std::vector<uint32_t>& uncounted,
                                                const std::vector<LivePages>& replaced,
                                                const std::vector<LivePages>& written) {
  CHECK(std::ranges::is_sorted(uncounted) && std::ranges::is_sorted(base, {}, live_order));
  std::vector<LivePages> left = base;
  for (const LivePages& less : replaced) {
    if (std::ranges::binary_search(uncounted, less.snapshot)) continue;
    const auto found = std::ranges::lower_bound(left, live_order(less), {}, live_order);
    const bool is_there = found != left.end() && live_order(*found) == live_order(less) &&
                          found->first_layer >= less.first_layer &&
                          found->next_layers >= less.next_layers;
    if (!is_there) {
      return make_error(
          ExitCode::failed,
          fmt::format("storage {}: {} pages of snapshot {} and node {} were replaced, which is "
                      "more than its live pages there: internal error",
                      less.storage_id, less.all(), less.snapshot, less.node));
    }
    CHECK(found->snapshot == less.snapshot && found->node == less.node);
    found->first_layer -= less.first_layer;
    found->next_layers -= less.next_layers;
  }
  PageCounts sum;
  sum.add(left);
  sum.add(written);
  return sum.list();
}

}  // namespace atolldb
