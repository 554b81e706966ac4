#include "engine/install/storage_release.h"

#include "engine/format/array_page.h"
#include "engine/mastertree/inspect.h"
#include "engine/sequential/sequential.h"

namespace atolldb {
namespace {

void release_array_page(WorkerContext& worker, VolatilePointer pointer) {
  if (pointer.is_null()) return;
  PageHeader* page = worker.view().resolve(pointer.thawed());
  if (page->level != 0) {
    for (const DualPointer& child : reinterpret_cast<ArrayInterior*>(page)->children) {
      release_array_page(worker, child.load_acquire());
    }
  }
  worker.pages().retire(page);
}

void release_array(WorkerContext& worker, StorageControl& storage) {
  const VolatilePointer root = storage.root.load_acquire();
  // Relaxed: `retire` fences between this store and its load of the epoch (R9).
  storage.root.volatile_word.store(0, std::memory_order_relaxed);
  release_array_page(worker, root);
}

}  // namespace

uint64_t release_storage(WorkerContext& worker, StorageControl& storage) {
  const uint64_t before = worker.pages().retired_count();
  switch (storage.type) {
    case StorageType::array:
      release_array(worker, storage);
      break;
    case StorageType::mastertree:
      release_tree(worker, storage);
      break;
    case StorageType::sequential:
      release_sequential(worker, storage);
      break;
    case StorageType::none:
      break;
  }
  return worker.pages().retired_count() - before;
}

}  // namespace atolldb
