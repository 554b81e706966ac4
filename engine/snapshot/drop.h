// What the drops of pages of arrays and Master-trees have in common (rules R1, R8, R43).
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/mutants.h"
#include "engine/transaction/vid.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/pointer.h"

namespace atolldb {

/// Whether a snapshot of this epoch has all that a record's VID stands for (R8). Ordinal 0 was
/// never a commit: it is enough that whoever reserved the record has long ended.
inline bool is_in_snapshot(Vid vid, uint64_t snapshot_epoch, const EpochBlock& epochs) {
  if (mutant(Mutant::drop_later_changes)) return true;
  if (vid.ordinal() != 0) return vid.epoch() <= snapshot_epoch;
  // Acquire pairs with the release of the coordinator: commits of that epoch are over.
  return vid.epoch() <= epochs.settled.load(std::memory_order_acquire);
}

/// The same of a page's floor. A copied-up page's has ordinal 0, too, and stands for commits.
inline bool is_floor_in_snapshot(uint64_t floor, uint64_t snapshot_epoch) {
  return Vid(floor).epoch() <= snapshot_epoch || mutant(Mutant::drop_later_changes);
}

/// The null word of the next drop: unlike all before it (R1).
inline VolatilePointer next_null(StorageControl& storage) {
  if (mutant(Mutant::drop_without_count)) return {};
  // Relaxed: nothing but the number counts.
  return VolatilePointer::null_of(storage.drop_count.fetch_add(1, std::memory_order_relaxed) + 1);
}

/// Stores the snapshot's page beside a pointer to a page that holds pointers itself and is only in
/// an older snapshot; the content is the same. A copy-up of the older page may be under way: it
/// would bring back pointers to snapshots that nobody reports, so the null word changes, and it
/// fails (R1). False: the copy was faster, there is a volatile page now.
inline bool replace_cold(StorageControl& storage, DualPointer& pointer, VolatilePointer seen,
                         SnapshotPointer page) {
  // Release, before the volatile word: R2.
  pointer.snapshot_word.store(page.word(), std::memory_order_release);
  uint64_t expected = seen.word();
  return pointer.volatile_word.compare_exchange_strong(
      expected, next_null(storage).word(), std::memory_order_acq_rel, std::memory_order_acquire);
}

/// R43, R8: of a page below which one was dropped. REQUIRES: the page's lock is held.
inline void raise_floor(std::atomic<uint64_t>& floor, uint64_t version) {
  if (mutant(Mutant::floor_forgets_left_out)) return;
  // Relaxed: read under the same lock, or as a hint.
  if (floor.load(std::memory_order_relaxed) < version) {
    floor.store(version, std::memory_order_relaxed);
  }
}

}  // namespace atolldb
