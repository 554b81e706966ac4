// A node's way to volatile pages for threads that have no page slot of their own: they take turns
// with one (R9). Installers walk pages through it; composers ask it where pages begin and end.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/snapshot/shape_source.h"
#include "engine/snapshot/snapshot_cache.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/page_pool.h"

namespace atolldb {

struct PageVisitorSettings {
  const ClusterView* view = nullptr;
  PagePool* pool = nullptr;
  WorkerMetrics* metrics = nullptr;
  SnapshotCache* snapshots = nullptr;
  uint32_t node = 0;
  uint32_t slot = 0;  // nobody else's
  uint32_t write_set = 0;
};

/// Keeps a few pages back: visitors replace parents of pages that were split, and if they could not
/// when the pool is exhausted, no snapshot would ever let pages go.
///
/// Any thread may call any function; one at a time goes on.
class PageVisitor : public ShapeSource {
 public:
  explicit PageVisitor(const PageVisitorSettings& settings);

  /// The slot is idle when `visit` begins and after it. REQUIRES: whatever it does is over soon, or
  /// nobody is in a hurry.
  void visit(const std::function<void(WorkerContext&)>& visit);
  Status shape_of(uint32_t storage_id, std::span<const std::byte> prefix, const SliceRange& range,
                  TreeShape& shape) override;

  /// Gives back pages that visits have retired, as far as their grace is over. False: some wait
  /// for it still; call again after about an epoch.
  bool recycle();

 private:
  void keep_reserve();

  std::mutex mutex_;
  SnapshotReader snapshots_;
  WorkerContext context_;  // guarded by mutex_
};

}  // namespace atolldb
