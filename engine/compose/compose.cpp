#include "engine/compose/compose.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "engine/compose/log_input.h"
#include "engine/compose/page_output.h"
#include "shared/base/check.h"

namespace atolldb {

Result<ComposedPartition> compose(const ComposeTask& task) {
  CHECK(task.storage < task.plan.storages.size() && task.plan.epoch >= task.plan.base_epoch);
  const PlannedStorage& storage = task.plan.storages[task.storage];
  CHECK(storage.type == StorageType::sequential || task.partition < storage.partitions.size());
  switch (storage.type) {
    case StorageType::array:
      return compose_array(task);
    case StorageType::mastertree:
    case StorageType::hash:
      return compose_mastertree(task);
    case StorageType::sequential:
      return compose_sequential(task);
    case StorageType::none:
      break;
  }
  return make_error(ExitCode::failed, fmt::format("storage {}: type {} is unknown", storage.id,
                                                  static_cast<int>(storage.type)));
}

ComposedPartition composed_partition(const ComposeTask& task, std::vector<ComposedPage> pages,
                                     const PageOutput& output, const LogInput& logs) {
  const PlannedStorage& storage = task.plan.storages[task.storage];
  const bool is_sequential = storage.type == StorageType::sequential;
  for (size_t i = 0; i < pages.size(); ++i) {
    CHECK(!pages[i].page.is_null());
    CHECK(is_sequential || i == 0 || pages[i - 1].low < pages[i].low);
    CHECK(is_sequential || pages[i].level == pages.front().level);
  }
  CHECK(logs.current() == nullptr);
  return {.storage_id = storage.id,
          .partition = task.partition,
          .pages = std::move(pages),
          .log_records = logs.count(),
          .pages_written = output.pages_written(),
          .pages_read = output.pages_read(),
          .pages_cached = output.pages_cached(),
          .stand_ins = output.stand_ins(),
          .written = output.written().list(),
          .replaced = output.replaced().list(),
          .records = output.records()};
}

}  // namespace atolldb
