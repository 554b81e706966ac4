#include "soc/snapshot/node_snapshots.h"

#include <sys/mman.h>

#include <cstdlib>
#include <string>

#include "shared/limits.h"
#include "shared/memory/segment_placement.h"

namespace atolldb {

void NodeSnapshots::Free::operator()(std::byte* bytes) const { std::free(bytes); }

Result<std::unique_ptr<NodeSnapshots>> NodeSnapshots::create(const NodeSnapshotsSettings& settings,
                                                             const Logger& logger) {
  const uint64_t least = SnapshotCache::min_bytes(settings.reader_count);
  if (settings.cache_bytes < least) {
    return make_error(ExitCode::config,
                      "memory.snapshot_cache: " + std::to_string(settings.cache_bytes) +
                          " bytes are too few for the " + std::to_string(settings.reader_count) +
                          " threads of a node that read snapshots: give it " +
                          std::to_string(least) + " or more");
  }
  std::unique_ptr<NodeSnapshots> snapshots(new NodeSnapshots(settings));
  // No memory is taken before it is touched.
  snapshots->memory_.reset(
      static_cast<std::byte*>(std::aligned_alloc(kSegmentStepBytes, settings.cache_bytes)));
  if (snapshots->memory_ == nullptr) {
    return make_error(ExitCode::resources, "memory.snapshot_cache: no address space for " +
                                               std::to_string(settings.cache_bytes) + " bytes");
  }
  if (const auto bound = bind_memory("snapshot cache", snapshots->memory_.get(),
                                     settings.cache_bytes, settings.numa_node);
      !bound) {
    return std::unexpected(bound.error());
  }
  if (settings.transparent_huge) {
    madvise(snapshots->memory_.get(), settings.cache_bytes, MADV_HUGEPAGE);  // only a wish
  }
  snapshots->cache_ = std::make_unique<SnapshotCache>(
      snapshots->memory_.get(), settings.cache_bytes, settings.reader_count, snapshots->files_,
      [logger](const Error& error) { logger->error("{}", error.message); });
  return snapshots;
}

}  // namespace atolldb
