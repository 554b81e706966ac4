#include "soc/installer/page_visitor.h"

#include "engine/compose/capture.h"
#include "engine/mastertree/fence_map.h"
#include "engine/transaction/storage_handle.h"
#include "shared/base/check.h"

namespace atolldb {

PageVisitor::PageVisitor(const PageVisitorSettings& settings)
    : keeps_reserve_(settings.keeps_reserve),
      snapshots_(*settings.snapshots, settings.slot, &settings.view->control->state),
      context_(*settings.view, *settings.pool, settings.node, settings.slot, *settings.metrics,
               settings.write_set) {
  CHECK(settings.slot < settings.view->shared[settings.node]->slot_count);
  context_.use_snapshots(snapshots_);
  context_.pages().replace_only();
  if (keeps_reserve_) keep_reserve();
}

void PageVisitor::visit(const std::function<void(WorkerContext&)>& visit) {
  const std::lock_guard guard(mutex_);
  keep_reserve();
  CHECK(context_.slot().begin_epoch.load(std::memory_order_relaxed) == kIdleEpoch);
  context_.enter();
  visit(context_);
  context_.leave();
}

Status PageVisitor::fence_map_of(uint32_t storage_id, std::span<const std::byte> prefix,
                                 const SliceRange& range, FenceMap& fence_map) {
  Status status = Status::ok;
  fence_map.clear();
  visit([&](WorkerContext& context) {
    StorageControl& storage = context.view().control->storage(storage_id);
    if (!is_storage_ready(storage, storage_id)) return;
    status = collect_fence_map(context, storage, prefix, range, fence_map);
  });
  return status;
}

Result<void> PageVisitor::capture_pages_of(uint32_t storage_id, const CaptureTask& task,
                                           std::vector<CapturedPage>& captured) {
  Result<void> done;
  visit([&](WorkerContext& context) {
    StorageControl& storage = context.view().control->storage(storage_id);
    if (!is_storage_ready(storage, storage_id)) return;
    done = capture_pages(context, storage, task, captured);
  });
  return done;
}

bool PageVisitor::recycle() {
  // A visit, for instance a capture, may take long. Its own calls of `enter` then recycle pages.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  context_.pages().recycle();
  if (context_.pages().retired_count() != 0) return false;
  context_.pages().flush();
  if (keeps_reserve_) keep_reserve();
  return true;
}

/// Fills the reserve. If the pool has too few pages now, pages that later visits retire fill it.
void PageVisitor::keep_reserve() {
  static_cast<void>(context_.pages().reserve(PageAllocator::kMaxReserve));
}

}  // namespace atolldb
