// What a run of the gleaner is to do: which mapper reads which stream, which reducer composes what
// (foedus.txt sections 7.1, 7.2).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/gleaner/glean_plan.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// A storage that the snapshot is to hold, as the catalog has it.
struct StorageToGlean {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  std::string name;
  uint32_t payload_bytes = 0;
  uint64_t record_count = 0;
};

/// What a run makes a snapshot of.
struct GleanTask {
  uint32_t snapshot = 0;  // its id, taken durably (R37)
  uint64_t epoch = 0;     // of the snapshot: every commit up to it is in the base or in `streams`
  ClusterUuid cluster_uuid = {};
  std::optional<SnapshotMetadata> base = {};
  std::vector<GleanStream> streams = {};
  std::vector<StorageToGlean> storages = {};  // those that are not dropped
  bool rewrites = false;                      // see GleanPlan
  bool salvages = false;                      // likewise
  uint64_t disk_reserve = 0;                  // bytes of each file system that it leaves free
  /// The cluster runs: the snapshot is to be installed beside volatile pages.
  bool has_volatile_pages = false;
};

/// The mappers of all nodes that have something to read. A stream is read by the node that wrote
/// it, whose mappers take turns; streams of nodes that are no more are everybody's, in turn.
std::vector<GleanMapper> assign_streams(const Config& config,
                                        const std::vector<GleanStream>& streams);

/// Ascending.
std::vector<ReducerPlace> reducers_of(const Config& config);

/// Reads a sample of the log. Errors: those of reading it.
Result<GleanPlan> make_plan(const Config& config, FileSystem& file_system, const GleanTask& task);

/// Where partitions of a Master-tree may begin: for each slice, ascending, one at or before it.
using CutsOf = std::function<Result<std::vector<uint64_t>>(uint32_t storage_id,
                                                           const std::vector<uint64_t>& slices)>;

/// Moves the boundaries of Master-trees' partitions down to where no pointer leads to both sides;
/// partitions that are empty then are no more.
Result<void> align_partitions(std::vector<GleanStorage>& storages, const CutsOf& cuts_of);

}  // namespace atolldb
