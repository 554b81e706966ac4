// Finds, in the coordinator, the storages that have pages in victims of a snapshot job. Also finds
// the files of the base that the new snapshot still needs, and its live pages (R67, R68).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/gleaner/snapshot_plan.h"
#include "engine/snapshot/live_pages.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/error.h"

namespace atolldb {

/// Marks the storages of the plan that may have pages in victims. If live pages are not counted,
/// these are all storages. Returns the number of such pages by storage, or kUnknownVictimPages if
/// it is unknown. REQUIRES: the plan has its storages, victims and files, and is made from `base`.
std::map<uint32_t, uint64_t> mark_victims(const SnapshotMetadata& base, SnapshotPlan& plan);

/// The pages that the composers of a job report, over all storages.
struct ComposedPages {
  std::vector<LivePages> written;
  std::vector<LivePages> replaced;
  /// A page of the base cannot be read, and the new snapshot retains a reference to it (R56).
  bool is_damaged = false;
};

/// Fills in the live pages of the new snapshot, and adds the files of the base that it needs. A
/// file without live pages is not needed. With damage all files are needed, since the damaged page
/// may lead to any of them, and the live pages of all files become unknown. The same holds if the
/// counts contradict each other, or if pages of a victim remain in use. REQUIRES: `snapshot` has
/// its storages and its new files. Returns the contradiction, which is an internal error, or
/// nothing if there is none.
std::optional<Error> add_base_files(const SnapshotPlan& plan, const SnapshotMetadata& base,
                                    const ComposedPages& pages, SnapshotMetadata& snapshot);

}  // namespace atolldb
