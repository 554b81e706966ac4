#include "shared/config/memory_split.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {
namespace {

constexpr uint64_t kLendingCachePart = 8;  // the cache's part of the total is 1 / this
constexpr uint64_t kLoneCachePart = 4;

/// The mode of durability does not matter, because benchmarks change it after the split.
uint64_t cache_part(const Config& config) {
  if (config.durability.scheme != DurabilityScheme::gleaned) return 0;
  return config.memory.total / (config.memory.lend_pool ? kLendingCachePart : kLoneCachePart);
}

}  // namespace

MemorySplit split_memory(const Config& config) {
  const uint64_t total = config.memory.total;
  CHECK(total >= kMinMemoryTotal && total % kSegmentStepBytes == 0);
  MemorySplit split;
  split.cache = std::max<uint64_t>(cache_part(config) / kSegmentStepBytes * kSegmentStepBytes,
                                   kSegmentStepBytes);
  split.pool = total - split.cache;
  CHECK(split.pool >= kSegmentStepBytes && split.pool + split.cache == total);
  return split;
}

void resolve_memory_total(Config& config) {
  if (config.memory.total < kMinMemoryTotal || config.memory.total % kSegmentStepBytes != 0) return;
  const MemorySplit split = split_memory(config);
  const auto set = [&](const char* key, uint64_t part, uint64_t& value) {
    const auto origin = config.origins.find(key);
    if (origin != config.origins.end() && origin->second != kOriginOfSplit) return;
    CHECK(part >= kSegmentStepBytes && part % kSegmentStepBytes == 0);
    value = part;
    config.origins[key] = kOriginOfSplit;
  };
  set("memory.volatile_pool", split.pool, config.memory.volatile_pool);
  set("memory.snapshot_cache", split.cache, config.memory.snapshot_cache);
}

}  // namespace atolldb
