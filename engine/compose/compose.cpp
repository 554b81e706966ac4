#include "engine/compose/compose.h"

#include <fmt/format.h>

namespace atolldb {

Result<ComposedPartition> compose(const ComposeTask& task) {
  const GleanStorage& storage = task.plan.storages[task.storage];
  switch (storage.type) {
    case StorageType::array:
      return compose_array(task);
    case StorageType::mastertree:
      return compose_mastertree(task);
    case StorageType::sequential:
      return compose_sequential(task);
    case StorageType::none:
      break;
  }
  return make_error(ExitCode::failed, fmt::format("storage {}: type {} is unknown", storage.id,
                                                  static_cast<int>(storage.type)));
}

}  // namespace atolldb
