// What every kind of page has in common when it is dropped (R8).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/mutants.h"
#include "engine/transaction/vid.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/page_header.h"
#include "shared/memory/pointer.h"

namespace atolldb {

/// Epochs up to which what a volatile page holds is in the snapshot that takes its place.
struct DropLimits {
  uint64_t epoch;    // of the snapshot
  uint64_t settled;  // of records that were reserved, and never written

  /// A record without a commit under way (its lock is held).
  bool cover(Vid vid) const {
    if (mutant(Mutant::drop_later_changes)) return true;
    if (vid.is_being_written()) return false;
    return vid.epoch() <= (vid.ordinal() == 0 ? settled : epoch);
  }
  bool cover_floor(uint64_t floor) const { return Vid(floor).epoch() <= epoch; }
};

/// R43: of the page that holds the pointer to the dropped one. Its lock is held.
inline void raise_floor(std::atomic<uint64_t>& floor, uint64_t version) {
  floor.store(std::max(floor.load(std::memory_order_relaxed), version), std::memory_order_relaxed);
}

/// The word of a pointer whose page is dropped: another one than ever before (R1).
inline VolatilePointer next_null(StorageControl& storage) {
  // Relaxed: only the number counts. Installers alone write this line, once a page.
  const uint32_t drop = storage.drop_count.fetch_add(1, std::memory_order_relaxed) + 1;
  return mutant(Mutant::drop_without_count) ? VolatilePointer() : VolatilePointer::null_of(drop);
}

}  // namespace atolldb
