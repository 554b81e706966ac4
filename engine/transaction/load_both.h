// Reads both words of a dual pointer.
#pragma once

#include <atomic>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "shared/base/pointer.h"

namespace atolldb {

/// Loads both words of a dual pointer. If the volatile word is null, it is the same before and
/// after the load of the snapshot word (R2). So no worker installed a page in between that an
/// installer then dropped onto a later snapshot.
inline DualPointer::View load_both(const DualPointer& pointer) {
  DualPointer::View view{pointer.load_acquire(), {}};
  while (view.page.is_null()) {
    reach(SyncPoint::loaded_null);
    // Acquire pairs with the installer's release: the installer stores the snapshot word before the
    // volatile word that drops the page.
    view.snapshot = SnapshotPointer(pointer.snapshot_word.load(std::memory_order_acquire));
    const VolatilePointer again = pointer.load_acquire();
    if (again == view.page || fault::load_null_once) break;
    view.page = again;
  }
  return view;
}

}  // namespace atolldb
