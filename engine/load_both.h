// Reads both words of a dual pointer.
#pragma once

#include <atomic>

#include "engine/mutants.h"
#include "engine/seams.h"
#include "shared/memory/pointer.h"

namespace atolldb {

/// R2: a null volatile word is the same before and after the snapshot word is loaded. So no page
/// was installed in between, and dropped onto a later snapshot.
inline DualPointer::View load_both(const DualPointer& pointer) {
  DualPointer::View view{pointer.load_acquire(), {}};
  while (view.page.is_null()) {
    reach(Seam::loaded_null);
    // Acquire pairs with the installer's release: the snapshot word is stored before the volatile
    // word that stands for it.
    view.snapshot = SnapshotPointer(pointer.snapshot_word.load(std::memory_order_acquire));
    const VolatilePointer again = pointer.load_acquire();
    if (again == view.page || mutant(Mutant::load_null_once)) break;
    view.page = again;
  }
  return view;
}

}  // namespace atolldb
