// Finds storages by name in the catalog of the control segment.
#pragma once

#include <cstring>
#include <string_view>

#include "shared/memory/control_layout.h"

namespace atolldb {

/// Returns the ready storage of this name and type (`none`: any type), or null if there is none.
/// Reads shared memory only. The search is linear: call it once at the start of a job or procedure
/// library, not per transaction.
inline StorageControl* find_storage(ControlSegment& control, std::string_view name,
                                    StorageType type = StorageType::none) {
  for (StorageControl& storage : control.storages) {
    // Acquire pairs with the release that made the storage ready: all fields are visible.
    if (storage.state.load(std::memory_order_acquire) !=
        static_cast<uint32_t>(StorageState::ready)) {
      continue;
    }
    if (name != storage.name) continue;
    return type == StorageType::none || type == storage.type ? &storage : nullptr;
  }
  return nullptr;
}

}  // namespace atolldb
