// Combines the composed partitions of a storage below one root page. Runs in the coordinator.
// Source: [FOEDUS15] section 7.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/gleaner/snapshot_plan.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/base/error.h"

namespace atolldb {

struct CombinedRoot {
  SnapshotPointer root;        // null: the storage has no records
  uint64_t records = 0;        // sequential: all records; others: log records that were applied
  uint64_t log_records = 0;    // log records applied in all partitions
  uint64_t pages_written = 0;  // by composers and by `combine_roots`
};

/// Writes the root of storage `storage` (index in `plan.storages`) and returns it. `partitions`:
/// the results of `compose` for this storage, ascending and complete. For a sequential storage,
/// partitions of nodes without records may be missing. If there are no log records, the result is
/// the root of the base, unless the plan rewrites all pages. The function adds interior pages where
/// partitions have different heights, so that all paths have the same length. From `base` it reads
/// only the newest root page of a sequential storage. It reads no composed page.
/// Errors: read and write errors; code failed if the partitions do not match the plan.
Result<CombinedRoot> combine_roots(const SnapshotPlan& plan, size_t storage,
                                   std::span<const ComposedPartition> partitions,
                                   const SnapshotFiles& base, SnapshotWriter& writer);

}  // namespace atolldb
