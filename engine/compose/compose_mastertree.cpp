#include "engine/compose/compose.h"

#include <algorithm>

#include "engine/compose/layer_composer.h"
#include "shared/base/try.h"

namespace atolldb {

namespace {

uint64_t low_of(const GleanPartition& partition) {
  return slice_of(std::as_bytes(std::span(partition.low)));
}

SliceRange range_of_partition(const GleanStorage& storage, uint32_t at) {
  SliceRange range;
  range.low = at == 0 ? 0 : low_of(storage.partitions[at]);
  range.high_is_end = at + 1 == storage.partitions.size();
  range.high = range.high_is_end ? 0 : low_of(storage.partitions[at + 1]);
  return range;
}

}  // namespace

Result<ComposedPartition> compose_mastertree(const ComposeTask& task) {
  const GleanStorage& storage = task.plan.storages[task.storage];
  PageOutput pages(task.base, task.writer, &task.writer_mutex, storage.id, task.cancelled);
  TreeWork work{pages,
                LogInput(task.logs, pages, storage.id),
                RecordFold(),
                task.plan.epoch,
                task.plan.rewrites,
                task.shapes,
                task.plan.salvages,
                task.on_unreadable};
  LayerComposer layer(work, {}, range_of_partition(storage, task.partition));
  uint32_t level = 0;
  ATOLL_ASSIGN(auto top, layer.compose_partition(storage.base_root, level));
  ATOLL_TRY(work.logs.check_end());
  ComposedPartition composed;
  composed.storage_id = storage.id;
  composed.partition = task.partition;
  for (const TreeChild& child : top) {
    if (child.page.is_null()) continue;  // a single null page: no records
    composed.pages.push_back({.low = child.low, .page = child.page, .level = level});
  }
  composed.log_records = work.logs.count();
  composed.pages_written = pages.pages_written();
  composed.pages_read = pages.pages_read();
  composed.stand_ins = pages.stand_ins();
  return composed;
}

}  // namespace atolldb
