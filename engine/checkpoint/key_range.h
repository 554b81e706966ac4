// Ranges of the records of a storage: the parts of a checkpoint. Any set of ranges that covers a
// storage is right. The division only decides how the work is shared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/format/tree_key.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// A part of one storage. Which members count depends on the type of the storage:
///   Master-tree, hash   stored keys from `low` to before `high` (nothing: no limit)
///   array               records [first, end)
///   heap                lists whose number modulo `end` is `first`
struct KeyRange {
  std::string low;
  std::optional<std::string> high;
  uint64_t first = 0;
  uint64_t end = 1;

  bool operator==(const KeyRange&) const = default;
};

/// Number of a worker's list in a heap. Lists of one node follow each other at the distance of the
/// number of nodes, so `parts` ranges get equal shares of every node's lists.
inline uint64_t list_number(uint32_t node, uint32_t ordinal, uint32_t node_count) {
  DCHECK(node < node_count);
  return uint64_t{ordinal} * node_count + node;
}

/// Divides the storage into `parts` ranges of about equal size. A tree is divided at the fences of
/// its upper pages, so the ranges of a small tree may be empty. Writes nothing to shared data.
/// Returns no range if there is no such storage, for example because it was dropped. REQUIRES: the
/// worker holds no page. Publishes and clears the begin epoch of the worker.
std::vector<KeyRange> divide_storage(WorkerContext& worker, uint32_t storage_id, uint32_t parts);

/// Returns the smallest key whose slice is at least `slice`.
std::string smallest_key_of(uint64_t slice);

}  // namespace atolldb
