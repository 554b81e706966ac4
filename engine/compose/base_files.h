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

/// Marks the storages of the plan that may have pages in victims. If the live pages of some victim
/// are not counted, these are all storages with pages in the base. Returns the number of pages in
/// victims by storage, or kUnknownVictimPages if it is unknown. REQUIRES: the plan has its
/// storages, victims and files, and is made from `base`.
std::map<uint32_t, uint64_t> mark_victims(const SnapshotMetadata& base, SnapshotPlan& plan);

/// The pages that the composers of a job report, over all storages.
struct ComposedPages {
  std::vector<LivePages> written;
  std::vector<LivePages> replaced;
  /// A page of the base cannot be read, and the new snapshot retains a reference to it (R56).
  bool is_damaged = false;
};

/// Fills in the live pages of the new snapshot, and adds the files of the base that it needs. A
/// file without live pages is not needed. In three cases all files are needed, and all files become
/// uncounted: a page cannot be read, and may lead to any file; the counts contradict each other; or
/// pages of a victim remain in use. The last two are internal errors. Returns such an error, or
/// nothing if there is none. REQUIRES: `snapshot` has its storages and its new files.
std::optional<Error> add_base_files(const SnapshotPlan& plan, const SnapshotMetadata& base,
                                    const ComposedPages& pages, SnapshotMetadata& snapshot);

}  // namespace atolldb
