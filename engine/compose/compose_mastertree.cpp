#include "engine/compose/compose.h"

#include <utility>
#include <vector>

#include "engine/compose/layer_composer.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

SliceRange range_of_partition(const PlannedStorage& storage, uint32_t at) {
  CHECK(is_tree(storage.type) && at < storage.partitions.size());
  SliceRange range;
  range.low = at == 0 ? 0 : low_slice(storage.partitions[at]);
  range.high_is_end = at + 1 == storage.partitions.size();
  range.high = range.high_is_end ? 0 : low_slice(storage.partitions[at + 1]);
  CHECK(range.high_is_end || range.low < range.high);
  return range;
}

Result<ComposedPartition> compose_mastertree(const ComposeTask& task) {
  const PlannedStorage& storage = task.plan.storages[task.storage];
  PageOutput pages(task.base, task.writer, &task.writer_mutex, storage.id, task.cancelled,
                   task.ahead);
  TreeWork work{pages,
                LogInput(task.logs, pages, storage.id),
                RecordFold(),
                task.plan.epoch,
                Victims(task.plan, storage),
                task.fence_maps,
                task.plan.salvages,
                task.on_unreadable,
                task.captured,
                storage.has_next_layers};
  const SliceRange range = range_of_partition(storage, task.partition);
  LayerComposer layer(work, {}, range);
  uint32_t level = 0;
  ATOLL_ASSIGN(const std::vector<TreeChild> top, layer.compose_partition(storage.base_root, level));
  ATOLL_TRY(work.logs.check_end());
  CHECK(work.captured.empty());  // all were used
  CHECK(top.front().low == range.low);
  CHECK(range.high_is_end || top.back().low < range.high);
  std::vector<ComposedPage> composed;
  for (const TreeChild& child : top) {
    CHECK(!child.page.is_null() || top.size() == 1);
    if (child.page.is_null()) continue;  // a single null page: no records
    composed.push_back({.low = child.low, .page = child.page, .level = level});
  }
  return composed_partition(task, std::move(composed), pages, work.logs);
}

}  // namespace atolldb
