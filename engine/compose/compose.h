// Composers build the pages of a new snapshot from sorted log records and the pages of the base
// snapshot.
// Source: [FOEDUS15] section 7.3; rules R35, R36, R43.
//
// A composer writes only pages that change. The new snapshot refers to an unchanged subtree of the
// base by its pointer, and the composer does not read that subtree.
// Memory: a few pages per level of the storage; 16 MiB (kMaxMergedPages) for a sequential storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "engine/format/stand_in.h"
#include "engine/format/tree_key.h"
#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/fence_map.h"
#include "engine/snapshot/page_ahead.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/base/error.h"
#include "shared/base/status.h"

namespace atolldb {

/// Returns the first slice of a partition of a Master-tree. Slice 0 is encoded as no bytes.
inline uint64_t low_slice(const PlannedPartition& partition) {
  return slice_of(std::as_bytes(std::span(partition.low)));
}

/// Returns the slices of the first layer that belong to a partition of a Master-tree.
SliceRange range_of_partition(const PlannedStorage& storage, uint32_t partition);

/// A border page of the new snapshot that was written before the composers began. It holds all
/// records of its range as of the snapshot's epoch, and the log input has none of that range
/// (engine/compose/capture.h, R75).
struct CapturedPage {
  SliceRange range;  // of the first layer
  SnapshotPointer page;
  uint64_t records = 0;
};

struct CaptureTask;

/// Interface through which a snapshot job reads the volatile pages of Master-trees: the ranges of
/// the pages for composers (R44), and images of pages (R75). The job's threads have no page slot of
/// their own (R9), so a thread that has one reads the pages for them.
struct FenceMapSource {
  virtual ~FenceMapSource() = default;
  /// Collects a fence map as `collect_fence_map` does: the part that overlaps `range`, of the layer
  /// whose keys begin with `prefix`. The map is empty if the storage no longer exists.
  /// Errors: those of `collect_fence_map`.
  /// Thread: any; calls are serialized.
  virtual Status fence_map_of(uint32_t storage_id, std::span<const std::byte> prefix,
                              const SliceRange& range, FenceMap& fence_map) = 0;
  /// Captures pages as the function `capture_pages` does. The default captures none.
  /// Errors: those of that function. Thread: any; calls are serialized.
  virtual Result<void> capture_pages_of(uint32_t storage_id, const CaptureTask& task,
                                        std::vector<CapturedPage>& captured);
};

/// The task of composing one partition of one storage. The objects that it refers to outlive the
/// call.
struct ComposeTask {
  const SnapshotPlan& plan;
  size_t storage;      // index in plan.storages
  uint32_t partition;  // index in the storage's partitions; sequential: the node
  LogSource& logs;     // log records of this storage and partition only
  const SnapshotFiles& base;
  SnapshotWriter& writer;  // writer of the node
  // Guards `writer`. The composer holds it while it copies one page, or one run of pages, to the
  // writer.
  std::mutex& writer_mutex;
  std::function<bool()> cancelled = {};  // polled from time to time; empty: never cancelled
  /// Source of the fence maps of the volatile pages beside which the new pages will be installed.
  /// Null if the storage has no volatile pages, or if their ranges do not matter.
  FenceMapSource* fence_maps = nullptr;
  /// Called for each page of the base that cannot be read. Thread: the composer's. May be empty.
  std::function<void(const UnreadablePage&)> on_unreadable = {};
  std::span<const CapturedPage> captured = {};  // Master-tree: pages of the partition, ascending
  /// Reads pages of the base before they are needed. Null: each is read when it is needed.
  PageAhead* ahead = nullptr;
};

/// Applies all log records and writes the pages of the partition. A page of the base that cannot be
/// read gets a stand-in (R56), or a salvage omits it (SnapshotPlan::salvages).
/// Errors: read and write errors; code failed after a cancellation; code corruption, with storage
/// and key, for impossible log records: records outside the partition, and updates of records that
/// do not exist. Code failed also if a page of the base below a captured page has to be read and
/// cannot; a job without captured pages then succeeds.
/// Thread: any.
Result<ComposedPartition> compose(const ComposeTask& task);

/// `compose` for one storage type.
Result<ComposedPartition> compose_array(const ComposeTask& task);
Result<ComposedPartition> compose_mastertree(const ComposeTask& task);
Result<ComposedPartition> compose_sequential(const ComposeTask& task);

}  // namespace atolldb
