// Step one of a snapshot job: assigns key ranges of each storage to reducers. The job first samples
// the log that it will read. The sample shows which keys exist and which node wrote them. Reads
// count where counting is cheap: when a snapshot cache misses a page. Source: [FOEDUS15] section
// 7.2, and section 10 for pages that a node changes seldom and another one reads often.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/gleaner/snapshot_plan.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// The key of one sampled record.
struct SampledKey {
  uint32_t storage_id = 0;
  uint16_t node = 0;  // node that logged the record
  /// Array: the index. Master-tree: the first-layer slice, as a number.
  uint64_t key = 0;

  auto operator<=>(const SampledKey&) const = default;
};

/// Pages of snapshots that a node has read from files: how many, and a sample of their keys. The
/// sample has keys of Master-trees only (RecentReads).
struct SampledReads {
  uint16_t node = 0;
  uint64_t count = 0;            // number of pages that were read, at least as many as `keys`
  std::vector<SampledKey> keys;  // `SampledKey::node` is that of the reader
};

/// Sampled records of the log.
struct SampledLog {
  std::vector<SampledKey> keys;
  uint64_t stride = 1;  // number of log blocks per block in the sample
};

/// Number of log blocks that a sample reads. They give a few thousand keys of each storage with
/// many writes.
inline constexpr uint64_t kSampledBlocks = 2048;

/// Samples the keys of `storages` in every n-th block of the streams, for epochs after `base_epoch`
/// up to the stream's last epoch. n is chosen so that about `blocks` blocks are read. Damaged
/// blocks are skipped; the mappers handle them.
/// Errors: those of the file system.
Result<SampledLog> sample_keys(FileSystem& file_system, std::span<const PlannedStorage> storages,
                               std::span<const PlannedStream> streams, uint64_t base_epoch,
                               uint64_t blocks = kSampledBlocks);

/// Minimum of sampled records per partition. Smaller partitions are not worth a reducer.
inline constexpr uint64_t kSampledPerPartition = 16;

/// Fills in `partitions` of each storage. `reducers`: those of all nodes, ascending, at least one.
/// The result does not depend on the order of the sample.
///
/// Boundaries are quantiles of the sampled keys, so that all partitions get about the same number
/// of records. Partitions of an array consist of whole children of the root. A reducer gets at most
/// one partition of a storage. A partition is assigned to the node that used it most, among the
/// nodes that have a reducer left for this storage: the records that it logged, and the pages that
/// it read, count alike. A storage with few records is one partition. Sequential storages get no
/// partitions.
void assign_partitions(std::vector<PlannedStorage>& storages, SampledLog sample,
                       std::span<const ReducerPlace> reducers,
                       std::span<const SampledReads> reads = {});

}  // namespace atolldb
