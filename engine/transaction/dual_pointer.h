// Reads, installs and copies up the pages that dual pointers lead to.
#pragma once

#include <atomic>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/transaction/transaction.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"

namespace atolldb {

/// Loads both words of a dual pointer. If the volatile word is null, loads it again after the
/// snapshot word, and starts over if it has changed (R2). So no page was installed and dropped onto
/// a later snapshot between the loads.
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

/// Returns true if the word is null and frozen. The page that holds it is then being replaced or
/// dropped (R3). Such a word decides no read, so the caller retries.
inline bool is_frozen_null(VolatilePointer word) {
  return word.is_null() && word.is_frozen() && !fault::register_frozen_null;
}

/// Installs a page, given by its pointer word `page`, over the null word `seen`. The
/// compare-and-swap succeeds only if the word is still exactly `seen` (R1). Release: the page is
/// complete before another thread can find it. If the word has changed, returns false and sets
/// `seen` to the new word. The caller then gives its page back.
inline bool install_page(std::atomic<uint64_t>& word, uint64_t& seen, uint64_t page) {
  DCHECK(VolatilePointer(seen).is_null() && !VolatilePointer(seen).is_frozen());
  DCHECK(!VolatilePointer(page).is_null());
  reach(SyncPoint::installing);
  if (fault::install_by_store) seen = word.load(std::memory_order_acquire);
  return word.compare_exchange_strong(seen, page, std::memory_order_acq_rel,
                                      std::memory_order_acquire);
}

/// Copies the page `view.snapshot` into the pool of the worker's own node and installs the copy in
/// `pointer`, which the caller has read as `view`. Returns ok even if another thread has changed
/// the word, because the caller reads the pointer again in any case. Returns pointer_installed if
/// the transaction depends on the absence of a volatile page: the attempt must end (R5). REQUIRES:
/// the caller holds no lock. May read from the device.
Status copy_up(Transaction& txn, DualPointer& pointer, const DualPointer::View& view);

}  // namespace atolldb
