// Compares the counts of live pages in the metadata of a snapshot with the pages that a walk reads
// (R67).
#pragma once

#include <vector>

#include "engine/snapshot/live_pages.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/error.h"

namespace atolldb {

/// Checks the counts of one storage. `walked`: SnapshotWalkTotals::live of a walk that could read
/// all pages of the storage. Files without counts are skipped.
/// Error: code corruption, which names storage, file and both numbers.
Result<void> check_live_pages(const SnapshotMetadata& snapshot, const SnapshotStorage& storage,
                              const std::vector<LivePages>& walked);

}  // namespace atolldb
