// Step one of a run of the gleaner: which keys of each storage which reducer composes (foedus.txt
// section 7.2). The statistics are a sample of the log that is to be gleaned: it tells both which
// keys there are and which node wrote them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/gleaner/glean_plan.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// One record of the sample.
struct SampledKey {
  uint32_t storage_id = 0;
  uint16_t node = 0;  // that logged it
  /// Array: the index; Master-tree: the first-layer slice; as a number.
  uint64_t key = 0;

  auto operator<=>(const SampledKey&) const = default;
};

/// Blocks of the log to look at: a few thousand keys of each storage that was written to much.
inline constexpr uint64_t kSampledBlocks = 2048;

/// Keys of `storages` in every n-th block of the streams, of epochs in (base epoch, the stream's
/// last], with n such that about `blocks` of the room in their files are looked at. Blocks that are
/// not intact do not count: what becomes of them is the mappers' business. Errors: those of the
/// file system.
Result<std::vector<SampledKey>> sample_keys(FileSystem& file_system,
                                            std::span<const GleanStorage> storages,
                                            std::span<const GleanStream> streams,
                                            uint64_t base_epoch, uint64_t blocks = kSampledBlocks);

/// Partitions of fewer sampled records than this are not worth a reducer of their own.
inline constexpr uint64_t kSampledPerPartition = 16;

/// Fills in `partitions` of each storage. `reducers`: of all nodes, ascending, at least one. The
/// same input, in whatever order the sample is, gives the same partitions.
///
/// Boundaries are at quantiles of the sampled keys, one partition for each reducer at most, so that
/// all get about the same number of records; those of arrays are multiples of the records below a
/// child of the root. A partition goes to the node that logged most of it and has a reducer left
/// for this storage. A storage with few records is one partition, of the node that logged most of
/// them. Sequential: none.
void assign_partitions(std::vector<GleanStorage>& storages, std::vector<SampledKey> sample,
                       std::span<const ReducerPlace> reducers);

}  // namespace atolldb
