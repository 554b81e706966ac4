// The coordinator's part of a snapshot's pages: one root per storage, over what all composers made
// (foedus.txt section 7.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/gleaner/composed.h"
#include "engine/gleaner/glean_plan.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/error.h"

namespace atolldb {

struct CombinedRoot {
  SnapshotPointer root;        // null: no records
  uint64_t records = 0;        // sequential: in all; others: log records that were applied
  uint64_t log_records = 0;    // applied, of all partitions
  uint64_t pages_written = 0;  // by composers and here
};

/// `partitions`: what `compose` answered for storage `storage` of the plan, ascending and complete
/// (sequential: at least those nodes that had records). Without any log record the answer is the
/// base's root. Pages of different levels get paths of one height. `base` is read for roots of
/// arrays and sequential storages alone; nothing that was composed is.
/// Errors: those of reading and writing; code failed for partitions that are not the plan's.
Result<CombinedRoot> combine_roots(const GleanPlan& plan, size_t storage,
                                   std::span<const ComposedPartition> partitions,
                                   const SnapshotFiles& base, SnapshotWriter& writer);

}  // namespace atolldb
