// Divides a storage of a snapshot into ranges for walks in parallel.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/verify/snapshot_walk.h"

namespace atolldb {

/// Approximate minimum number of leaf pages of a range.
inline constexpr uint64_t kMinPagesPerRange = 64;

/// Maximum number of pages (16 TiB) of a sequential storage that are divided evenly. The last range
/// has all pages after them.
inline constexpr uint64_t kMaxDividedRunPages = uint64_t{1} << 32;

/// Returns up to `count` ranges that cover the storage, in order, without overlaps, with about
/// equally many pages. A Master-tree is divided only by the first 8 bytes of its keys. A page that
/// is damaged ends the division, and the walk of its range reports it. REQUIRES: `count` is not 0.
std::vector<WalkRange> split_storage(const SnapshotFiles& files, const SnapshotWalkStorage& storage,
                                     uint32_t count);

}  // namespace atolldb
