// The node's access to snapshots: their open files, its cache of pages (R39), and the snapshots
// that transactions may begin with (R18).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/snapshot/published_snapshots.h"
#include "engine/snapshot/snapshot_cache.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/base/error.h"
#include "shared/logging/logger.h"

namespace atolldb {

struct SnapshotStoreSettings {
  FileSystem* file_system = nullptr;  // outlives the store
  NodeShared* shared = nullptr;       // segment with the slots of the workers; outlives the store
  const std::atomic<uint32_t>* newest =
      nullptr;  // ControlSegment::readable_snapshot; outlives the store
  ClusterUuid cluster_uuid = {};
  uint64_t cache_bytes = 0;
  uint32_t reader_count = 0;      // threads of the node that read snapshot pages
  bool transparent_huge = false;  // ask for 2 MiB pages: memory.huge_pages is not off
  int32_t numa_node = -1;         // NUMA node of the cache's memory; -1: any
  PagePool* lender = nullptr;     // lends free pages to the cache, outlives the store; null: none
};

class SnapshotStore {
 public:
  /// Creates the store. Reserves address space for the cache; each page of the cache takes memory
  /// when it is first used. Returns code config if the cache is too small for its readers.
  static Result<std::unique_ptr<SnapshotStore>> create(const SnapshotStoreSettings& settings,
                                                       const Logger& logger);

  SnapshotFiles& files() { return files_; }
  SnapshotCache& cache() { return *cache_; }
  PublishedSnapshots& published() { return published_; }

 private:
  explicit SnapshotStore(const SnapshotStoreSettings& settings)
      : files_(*settings.file_system, settings.cluster_uuid),
        published_(*settings.shared, *settings.newest) {}

  struct Free {
    void operator()(std::byte* bytes) const;
  };

  SnapshotFiles files_;
  PublishedSnapshots published_;
  std::unique_ptr<std::byte, Free> memory_;
  std::unique_ptr<SnapshotCache> cache_;
};

}  // namespace atolldb
