// Limits of ids, epochs and sets in shared memory. The config rejects values above them.
#pragma once

#include <cstdint>

namespace atolldb {

/// Node ids have 8 bits.
inline constexpr uint32_t kMaxNodes = 255;
/// Node id that means the coordinator.
inline constexpr uint32_t kCoordinator = kMaxNodes;
/// Worker ordinals have 8 bits. The highest ones are for auxiliary threads.
inline constexpr uint32_t kMaxWorkersPerNode = 250;
/// Threads of a node that install a snapshot at the same time. Each has a page slot.
inline constexpr uint32_t kMaxInstallers = 5;
/// Files that one thread writes for a checkpoint.
inline constexpr uint32_t kMaxCheckpointFiles = 64;

/// Epochs start at 1 or later, and fit in 36 bits (two decades at 10 ms).
inline constexpr uint64_t kMaxEpoch = (uint64_t{1} << 36) - 1;

/// Maximum number of records that one transaction writes. More would hold their locks for too long.
inline constexpr uint32_t kMaxWriteSet = 65535;

/// Longest part of the input or the output of a session's request. Longer ones have several parts.
inline constexpr uint32_t kSessionPartBytes = 64u << 10;
/// Highest values of procedures.max_input and procedures.max_output. An input takes at most half of
/// the slots of its session.
inline constexpr uint32_t kMaxSessionInputBytes = 128u << 20;
inline constexpr uint32_t kMaxSessionOutputBytes = 1u << 30;

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
/// Segment sizes are multiples of this.
inline constexpr uint64_t kSegmentStepBytes = kHugePageBytes;

/// Bits in a CPU mask: as many CPUs as Linux supports.
inline constexpr int32_t kMaxCpus = 8192;

}  // namespace atolldb
