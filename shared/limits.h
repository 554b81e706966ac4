// Limits that the layouts of shared memory set. Defined once: segments are laid out by them, and
// the config refuses what is beyond them.
#pragma once

#include <cstdint>

namespace atolldb {

/// Node ids have 8 bits.
inline constexpr uint32_t kMaxNodes = 255;
/// Stands where a node id does when the coordinator is meant.
inline constexpr uint32_t kCoordinator = kMaxNodes;
/// Worker ordinals have 8 bits; the highest are for auxiliary threads.
inline constexpr uint32_t kMaxWorkersPerNode = 250;

/// Epochs start at 1 at the earliest and fit in 36 bits (two decades at 10 ms).
inline constexpr uint64_t kMaxEpoch = (uint64_t{1} << 36) - 1;

/// Lock blocks beyond the write set's, for system transactions: a page lock or two, and every
/// record of the pages concerned.
inline constexpr uint32_t kSystemLockBlocks = 1024;
/// Records that one transaction writes: each takes a lock block, whose indexes have 16 bits and
/// start at 1.
inline constexpr uint32_t kMaxWriteSet = 65535 - kSystemLockBlocks - 1;

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
/// Segments are mapped in steps of it.
inline constexpr uint64_t kSegmentStepBytes = kHugePageBytes;

/// CPUs that masks have room for: as many as Linux supports.
inline constexpr int32_t kMaxCpus = 8192;

}  // namespace atolldb
