// Combines the composed partitions of a storage below one root page. Runs in the coordinator.
// Source: [FOEDUS15] section 7.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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
  // Pages by file (R67). Empty if `root` is the root of the base, because nothing was written then.
  std::vector<LivePages> written = {};
  std::vector<LivePages> replaced = {};
  RecordChange change = {};  // Master-tree: in all partitions
};

/// Writes the root of storage `storage` (index in `plan.storages`) and returns it. `partitions`:
/// the results of `compose` for this storage, ascending and complete. For a sequential storage the
/// nodes without records may be missing. The result is the root of the base if composers applied no
/// log record and wrote no page, and the storage has no victims. The function adds interior pages
/// where partitions have different heights, so that all paths have the same length. From `base` it
/// reads only root pages of sequential storages. It reads no composed page.
/// Errors: read and write errors; code failed if the partitions do not match the plan.
Result<CombinedRoot> combine_roots(const SnapshotPlan& plan, size_t storage,
                                   std::span<const ComposedPartition> partitions,
                                   const SnapshotFiles& base, SnapshotWriter& writer);

}  // namespace atolldb
