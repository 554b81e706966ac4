// The split of `memory.total` into a node's page pool and its snapshot cache.
#pragma once

#include <cstdint>

#include "shared/base/limits.h"
#include "shared/config/config.h"

namespace atolldb {

/// Bytes of one node. Their sum is `memory.total`.
struct MemorySplit {
  uint64_t pool = 0;
  uint64_t cache = 0;

  bool operator==(const MemorySplit&) const = default;
};

/// Returns the parts of `memory.total`, each a multiple of 2 MiB and at least as large. With
/// `memory.lend_pool` the cache gets an eighth: free pages of the pool hold snapshot pages, too,
/// but the pool cannot use frames of the cache. Without it the cache gets a quarter. With
/// checkpoints instead of snapshots there is no cache, so the cache's part is the smallest one.
/// REQUIRES: total is a multiple of 2 MiB, and at least kMinMemoryTotal.
MemorySplit split_memory(const Config& config);

/// The smallest pool and the smallest cache.
inline constexpr uint64_t kMinMemoryTotal = 2 * kSegmentStepBytes;

/// Origin of values that follow from `memory.total` (Config::origins).
inline constexpr const char* kOriginOfSplit = "memory.total";

/// Sets those of `memory.volatile_pool` and `memory.snapshot_cache` that the config does not give
/// to their parts of `memory.total`. Does nothing without a valid total. check_config reports a
/// total that is too small, and given values that differ from their parts. resolve_defaults calls
/// this function.
void resolve_memory_total(Config& config);

}  // namespace atolldb
