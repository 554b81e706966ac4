// The plan of a snapshot: which mapper reads which stream, and which reducer composes which
// partition. Source: [FOEDUS15] sections 7.1 and 7.2.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/catalog/catalog.h"
#include "engine/gleaner/assign_partitions.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/config/job_threads.h"
#include "shared/file/file.h"

namespace atolldb {

/// The parameters of a snapshot: what it contains, and how it is made.
struct SnapshotTask {
  uint32_t snapshot = 0;  // id of the new snapshot, taken durably (R37)
  /// Epoch of the new snapshot. The base and `streams` hold all commits up to it.
  uint64_t epoch = 0;
  ClusterUuid cluster_uuid = {};
  std::optional<SnapshotMetadata> base = {};  // the newest snapshot, if there is one
  std::vector<PlannedStream> streams = {};
  std::vector<StorageEntry> storages = {};  // all storages that are not dropped
  std::vector<uint32_t> victims = {};       // snapshots whose live pages the job copies (R68)
  bool salvages = false;                    // omits data of the base that cannot be read (R56)
  bool merges_runs = false;                 // merges runs of sequential storages (R69)
  bool keeps_reserve = false;               // leaves the disk reserve free (disk_room.h)
  /// True if the cluster runs. Then there are volatile pages beside which the snapshot will be
  /// installed.
  bool has_volatile_pages = false;
  /// The nodes capture volatile pages (R75). REQUIRES: has_volatile_pages.
  bool captures_pages = false;
  std::vector<SampledReads> reads = {};  // by node, since the snapshot before
  /// The job begins before the install of its base ends (R84, R85). REQUIRES: has_volatile_pages.
  bool overlaps_install = false;
  std::vector<uint64_t> log_bytes = {};  // log bytes to read, by node; empty in a recovery
  /// Returns the part of the work that should be done now (SnapshotPace). Thread: any. Empty: the
  /// job never pauses.
  std::function<double()> goal = {};
};

/// Returns the threads of the job, by node. Before the cluster runs, these are the threads of a
/// recovery.
std::vector<JobThreads> threads_of(const Config& config, const SnapshotTask& task);

/// Splits `stream` into at most `parts` streams, in the order of their epochs. Together they have
/// its records in (covered_epoch, last_epoch]. A part begins near the begin of a file, so a stream
/// in one file stays whole. Parts have about the same number of files. Error: a file system error.
Result<std::vector<PlannedStream>> split_stream(FileSystem& file_system,
                                                const PlannedStream& stream, uint32_t parts);

/// Returns the mappers, of all nodes, that have a stream to read. The streams of a node are
/// assigned to the mappers of that node, round robin. If a node has more mappers than streams, its
/// streams are split. Streams of nodes that no longer exist are distributed over all nodes.
/// `threads`: threads of the job, by node. Error: a file system error.
Result<std::vector<PlannedMapper>> assign_streams(FileSystem& file_system,
                                                  const std::vector<JobThreads>& threads,
                                                  const std::vector<PlannedStream>& streams);

/// Returns the reducers of all nodes, ascending. `threads`: threads of the job, by node.
std::vector<ReducerPlace> reducers_of(const std::vector<JobThreads>& threads);

/// Makes the plan. Reads a sample of the log, and the roots of the base if there are victims.
/// Returns an error if a read of the log fails.
Result<SnapshotPlan> make_plan(const Config& config, FileSystem& file_system,
                               const SnapshotTask& task);

/// Returns the first slice of a partition of a Master-tree. It is 0 for the first partition.
uint64_t first_slice_of(const PlannedPartition& partition);

/// Returns possible boundaries between partitions of a Master-tree. `slices` ascend. The result has
/// for each of them the nearest possible boundary that is not larger.
using CutsOf = std::function<Result<std::vector<uint64_t>>(uint32_t storage_id,
                                                           const std::vector<uint64_t>& slices)>;

/// Moves each boundary between partitions of a Master-tree to the nearest possible one that is not
/// larger. At a possible boundary, no pointer without a volatile page leads to keys on both sides.
/// Removes partitions that become empty.
Result<void> align_partitions(std::vector<PlannedStorage>& storages, const CutsOf& cuts_of);

}  // namespace atolldb
