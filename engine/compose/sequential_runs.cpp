#include "engine/compose/sequential_runs.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

uint32_t composing_node(const SnapshotPlan& plan, const SequentialRun& run) {
  CHECK(!plan.reducers.empty());
  const uint32_t node = SnapshotPointer(run.first_page).node();
  const bool is_there = std::ranges::any_of(
      plan.reducers, [&](const ReducerPlace& place) { return place.node == node; });
  return is_there ? node : plan.reducers.front().node;
}

size_t first_merged_run(std::span<const SequentialRun> runs) {
  size_t first = runs.size();
  uint64_t copied = 0;
  for (size_t i = runs.size(); i > 0; --i) {
    const SequentialRun& run = runs[i - 1];
    // Number of pages in the newer runs, which are merged, plus the new pages. The number of new
    // pages is not known yet, so they count as one.
    const uint64_t newer = copied + 1;
    if (run.is_lost() || run.pages > kMaxMergedPages - copied) break;
    // Runs whose epochs overlap cannot be merged, because the epochs of a run ascend (R69).
    if (i < runs.size() && run.last_epoch > runs[i].first_epoch) break;
    if (newer >= run.pages) first = i - 1;
    copied += run.pages;
    DCHECK(copied <= kMaxMergedPages);
  }
  return first;
}

Result<BaseRuns> read_base_runs(PageOutput& pages, SnapshotPointer root,
                                const EnoughRuns& is_enough) {
  BaseRuns base;
  base.older = root;
  PageBuffer buffer;
  for (bool is_over = false; !is_over && !base.older.is_null();) {
    const SnapshotPointer at = base.older;
    ATOLL_ASSIGN(auto found,
                 pages.find(at, buffer, PageType::sequential, PageType::sequential, 0, false));
    if (!found.is_readable) {
      base.unreadable = std::move(found.reason);
      break;
    }
    const auto& page = *buffer.as<SequentialSnapshotRoot>();
    if (!page.is_sound(at)) {
      return wrong_page(pages.storage_id(), at, "it is not a root page of a sequential storage");
    }
    const std::span<const SequentialRun> runs(page.runs, page.count);
    for (const SequentialRun& run : runs) {
      ATOLL_TRY(pages.check_child(at, SnapshotPointer(run.first_page)));
    }
    base.roots.push_back(at);
    base.runs.insert(base.runs.end(), runs.rbegin(), runs.rend());
    base.older = SnapshotPointer(page.previous);
    base.older_records = page.previous_records;
    is_over = is_enough(runs, base.older);
  }
  std::ranges::reverse(base.runs);
  return base;
}

}  // namespace atolldb
