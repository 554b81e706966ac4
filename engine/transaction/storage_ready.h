// Checks that a storage still exists, for page walks outside transactions.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/hooks/mutants.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Returns true if the storage is ready and its slot still holds the storage `id`. The caller calls
/// it each time it has published a begin epoch, before it loads pages of the storage. A drop hides
/// the storage first, then waits for the begin epochs of threads that may have called this before
/// (R9, R34). Thread: any.
inline bool is_storage_ready(const StorageControl& storage, uint32_t id) {
  if (fault::walk_dropped_storages) return true;
  // seq_cst pairs with the store that hid the storage: either this load sees it, or the drop sees
  // the caller's begin epoch.
  return static_cast<StorageState>(storage.state.load(std::memory_order_seq_cst)) ==
             StorageState::ready &&
         storage.id == id;
}

}  // namespace atolldb
