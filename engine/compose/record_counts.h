// Numbers of records of the Master-trees of a snapshot. Runs in the coordinator.
//
// Composers count the records of the pages that they write and replace, so no job has to read a
// whole storage. They read only some of the pages of the base whose whole range was captured (R75):
// those at the bounds of a partition, those in the node's cache, and a sample. The others count as
// an average page of the sample. So pages that grow or shrink need no separate treatment.
//
// The errors of the samples have no preferred sign, but they add up. A snapshot that writes all
// pages of the storage makes the count exact again.
#pragma once

#include <optional>

#include "engine/compose/combine_roots.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/snapshot/snapshot_metadata.h"

namespace atolldb {

/// Returns the number of records of a Master-tree in the new snapshot, or nothing if it is not
/// known for the base. `base`: the snapshot that the plan names; an empty one if there is none.
/// `is_damaged`: the new snapshot refers to pages of the storage that cannot be read.
std::optional<RecordCount> records_after(const SnapshotPlan& plan, const PlannedStorage& storage,
                                         const SnapshotMetadata& base, const RecordChange& change,
                                         bool is_damaged);

}  // namespace atolldb
