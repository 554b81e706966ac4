// Whether a storage is still there, for those who walk its pages and are no transactions.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/mutants.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Ready, and still this one: its slot may have become another's. After every publishing of a begin
/// epoch, before pages are looked at behind it: whoever drops a storage hides it first, and waits
/// for the begin epochs of those who may have asked before (R9, R34). Any thread.
inline bool is_storage_ready(const StorageControl& storage, uint32_t id) {
  if (mutant(Mutant::walk_dropped_storages)) return true;
  // seq_cst pairs with the store that hid it: either we see that, or its drop sees our begin epoch.
  return static_cast<StorageState>(storage.state.load(std::memory_order_seq_cst)) ==
             StorageState::ready &&
         storage.id == id;
}

}  // namespace atolldb
