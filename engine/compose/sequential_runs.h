// Runs of a sequential storage in the base of a new snapshot, and the rule by which runs are merged
// (R69). Used by composers and by `combine_roots`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/compose/page_output.h"
#include "engine/format/sequential_page.h"
#include "engine/gleaner/snapshot_plan.h"
#include "shared/base/error.h"

namespace atolldb {

/// A snapshot copies at most this many pages (16 MiB) of one storage and node to merge runs.
/// Runs in victims have no such limit.
inline constexpr uint64_t kMaxMergedPages = 4096;

/// Returns the node that composes a run of the base: the node whose file it is in, or the node of
/// the first reducer if the cluster does not have that node any more.
uint32_t composing_node(const SnapshotPlan& plan, const SequentialRun& run);

/// Returns the index of the oldest run to merge; it and all newer ones become one run. Returns the
/// number of runs if none is to be merged. A run is merged if the newer ones have at least as many
/// pages (R69). `runs`: the runs of one node, oldest first.
size_t first_merged_run(std::span<const SequentialRun> runs);

/// The runs in the newest root pages of the base.
struct BaseRuns {
  std::vector<SequentialRun> runs;     // oldest first
  SnapshotPointer older;               // the next older root page, which was not read; null: none
  uint64_t older_records = 0;          // records in `older` and all root pages before it, if known
  std::string unreadable;              // why `older` cannot be read; empty: `older` was not needed
  std::vector<SnapshotPointer> roots;  // the root pages that were read
};

/// Called for each root page, the newest one first. `runs`: the runs of this page. `older`: the
/// next older root page. Returns true if `older` is not needed.
using EnoughRuns = std::function<bool(std::span<const SequentialRun> runs, SnapshotPointer older)>;

/// Reads root pages, the newest first, until `is_enough` or until one cannot be read (R56).
/// Errors: code corruption for a readable page that is not a root page of the storage, or that
/// leads to a newer page (R68).
Result<BaseRuns> read_base_runs(PageOutput& pages, SnapshotPointer root,
                                const EnoughRuns& is_enough);

}  // namespace atolldb
