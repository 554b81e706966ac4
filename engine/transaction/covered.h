// Whether a snapshot contains a change (R8, R43, R78).
#pragma once

#include <cstdint>

#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Returns whether the snapshot of `snapshot_epoch` contains every change that `vid` stands for
/// (R8). A VID with ordinal 0 stands for no commit. For such a VID it suffices that the transaction
/// that reserved the record has ended.
inline bool is_in_snapshot(Vid vid, uint64_t snapshot_epoch, const EpochBlock& epochs) {
  if (fault::drop_later_changes) return true;
  if (vid.ordinal() != 0) return vid.epoch() <= snapshot_epoch;
  // The coordinator stores `settled`, with release, when all commits up to it have ended.
  return vid.epoch() <= epochs.settled.load(std::memory_order_acquire);
}

/// Does the same for a record's VID: it stands for no change that is not complete yet.
inline bool is_covered(Vid vid, uint64_t snapshot_epoch, const EpochBlock& epochs) {
  return !vid.is_being_written() && is_in_snapshot(vid, snapshot_epoch, epochs);
}

/// Returns whether the snapshot contains everything up to `max_removed_vid`, the newest removed
/// version of a page's range (R43). In a copied-up page that VID has ordinal 0, but stands for
/// commits.
inline bool is_removed_in_snapshot(uint64_t max_removed_vid, uint64_t snapshot_epoch) {
  return Vid(max_removed_vid).epoch() <= snapshot_epoch || fault::drop_later_changes;
}

}  // namespace atolldb
