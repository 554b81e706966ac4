// Returns pages that the volatile pool has lent to the snapshot cache, when transactions need them
// (R81).
#pragma once

#include <atomic>
#include <thread>

#include "engine/snapshot/snapshot_cache.h"
#include "shared/memory/page_pool.h"

namespace atolldb {

/// Thread that returns lent pages when the pool has too few free pages. It blocks otherwise.
class LentPageReturner {
 public:
  /// `pool`: the lender of the cache. Both outlive this object.
  LentPageReturner(PagePool& pool, SnapshotCache& cache);
  LentPageReturner(const LentPageReturner&) = delete;
  LentPageReturner& operator=(const LentPageReturner&) = delete;
  ~LentPageReturner();

 private:
  void work();

  PagePool& pool_;
  SnapshotCache& cache_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace atolldb
