// Returns pages that the volatile pool has lent to the snapshot cache, when transactions need them
// (R81).
#pragma once

#include <atomic>
#include <thread>

#include "engine/snapshot/snapshot_cache.h"
#include "shared/memory/page_pool.h"

namespace atolldb {

/// A thread that blocks while the pool has enough free pages.
class LentPages {
 public:
  /// `pool`: the lender of the cache. Both outlive this object.
  LentPages(PagePool& pool, SnapshotCache& cache);
  LentPages(const LentPages&) = delete;
  LentPages& operator=(const LentPages&) = delete;
  ~LentPages();

 private:
  void work();

  PagePool& pool_;
  SnapshotCache& cache_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace atolldb
