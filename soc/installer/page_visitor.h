// Lets threads without a page slot access volatile pages. All of them use the slot of the visitor,
// one at a time (R9). The installer visits pages, and composers get fence maps.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/compose/compose.h"
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
  uint32_t slot = 0;  // used only by this visitor
  uint32_t write_set = 0;
  bool keeps_reserve = true;  // true: keeps the reserve of pages also between visits
};

/// Keeps a small reserve of pages, because a visit may replace the parents of split pages. Without
/// the reserve, a visit could not do this when the pool is exhausted, and then no snapshot could
/// free pages. Pools of 16 MiB or more also have a reserve for all installers together
/// (PagePool::reserved_of). Of the visitors of a node, the first and the last one keep their
/// reserves all the time.
///
/// Thread: any, for all functions. The calls run one at a time.
class PageVisitor : public FenceMapSource {
 public:
  explicit PageVisitor(const PageVisitorSettings& settings);

  /// Calls `visit` with the slot's context, which has entered the current epoch. The slot is idle
  /// before and after the call. REQUIRES: `visit` returns soon, or no other thread needs the slot
  /// soon.
  void visit(const std::function<void(WorkerContext&)>& visit);
  Status fence_map_of(uint32_t storage_id, std::span<const std::byte> prefix,
                      const SliceRange& range, FenceMap& fence_map) override;
  Result<void> capture_pages_of(uint32_t storage_id, const CaptureTask& task,
                                std::vector<CapturedPage>& captured) override;

  /// Frees the pages that visits have retired and whose grace is over. Returns false if a visit is
  /// in progress, or if the grace of some pages is not over. The caller should then call again
  /// after about an epoch.
  bool recycle();

 private:
  void keep_reserve();

  std::mutex mutex_;
  const bool keeps_reserve_;
  SnapshotReader snapshots_;
  WorkerContext context_;  // guarded by mutex_
};

}  // namespace atolldb
