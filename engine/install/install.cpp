#include "engine/install/install.h"

#include <algorithm>

#include "engine/format/array_page.h"
#include "engine/mastertree/inspect.h"
#include "engine/sequential/sequential.h"
#include "engine/transaction/storage_handle.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

void release_array_page(WorkerContext& worker, VolatilePointer pointer) {
  if (pointer.is_null()) return;
  PageHeader* page = worker.view().resolve(pointer.thawed());
  CHECK(page->type == (page->level == 0 ? PageType::array_leaf : PageType::array_interior));
  if (page->level != 0) {
    for (const DualPointer& child : reinterpret_cast<ArrayInterior*>(page)->children) {
      release_array_page(worker, child.load_acquire());
    }
  }
  worker.pages().retire(page);
}

void release_array(WorkerContext& worker, StorageControl& storage) {
  const VolatilePointer root = storage.root.load_acquire();
  // Relaxed, because `retire` executes a fence before it loads the epoch (R9).
  storage.root.volatile_word.store(0, std::memory_order_relaxed);
  release_array_page(worker, root);
}

}  // namespace

void InstallReport::add(const InstallReport& other) {
  for (const InstallCounter& each : kInstallCounters) this->*each.value += other.*each.value;
  dropped_hot += other.dropped_hot;
  waited_ms += other.waited_ms;
  longest_hold_ns = std::max(longest_hold_ns, other.longest_hold_ns);
  oldest_left = std::min(oldest_left, other.oldest_left);
  is_damaged = is_damaged || other.is_damaged;
}

Status begin_turn(WorkerContext& worker, StorageControl& storage, uint32_t storage_id,
                  const InstallTask& task) {
  worker.enter();
  if (worker.cluster_failed()) return Status::cluster_failed;
  if (task.cancelled && task.cancelled()) return Status::unavailable;
  // The check follows the publication of the begin epoch, because a drop of the storage waits for
  // begin epochs (R34).
  if (!is_storage_ready(storage, storage_id)) return Status::storage_not_found;
  DCHECK(storage.type != StorageType::none);
  return Status::ok;
}

Status install_snapshot(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                        InstallReport& report) {
  CHECK(task.drop_policy != nullptr);
  CHECK(task.root.is_null() || task.root.snapshot() <= task.snapshot);
  CHECK(task.part.high_is_end || task.part.low < task.part.high);
  Status status = Status::invalid_argument;
  switch (storage.type) {
    case StorageType::array:
      status = install_array(worker, storage, task, report);
      break;
    case StorageType::mastertree:
    case StorageType::hash:
      status = install_mastertree(worker, storage, task, report);
      break;
    case StorageType::sequential:
      status = install_sequential(worker, storage, task, report);
      break;
    case StorageType::none:
      break;
  }
  worker.leave();
  CHECK(report.kept_hot <= report.kept);
  if (status != Status::ok) report.oldest_left = 0;
  return status;
}

uint64_t release_storage(WorkerContext& worker, StorageControl& storage) {
  const uint64_t before = worker.pages().retired_count();
  switch (storage.type) {
    case StorageType::array:
      release_array(worker, storage);
      break;
    case StorageType::mastertree:
    case StorageType::hash:
      release_tree(worker, storage);
      break;
    case StorageType::sequential:
      release_sequential(worker, storage);
      break;
    case StorageType::none:
      break;
  }
  CHECK(worker.pages().retired_count() >= before);
  return worker.pages().retired_count() - before;
}

}  // namespace atolldb
