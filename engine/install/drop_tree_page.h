// Drops one volatile page of a Master-tree if the snapshot page has the same content (R8).
#pragma once

#include <cstdint>

#include "engine/install/drop.h"
#include "engine/mastertree/descent.h"

namespace atolldb {

enum class Dropped : uint8_t {
  yes,
  changed,  // the page holds more than the snapshot, or has volatile pages below it
  busy,     // another thread holds a lock
};

/// Checks without locks whether the page must be retained. The result is a hint. Returns true if:
/// * the snapshot of `epoch` lacks a change of the page,
/// * the page has volatile pages below it, or
/// * it is a border page without live records (see drop_border).
bool seems_needed(const WorkerContext& worker, BorderPage* page, uint64_t epoch);
bool seems_needed(const WorkerContext& worker, InteriorPage* page, uint64_t epoch);

/// Both functions drop `page`, to which `link` leads. `page` is not the root of a storage.
/// `snapshot`: the page of exactly the same range in the snapshot of `epoch`; for the root of a
/// layer, the layer's root there.
/// REQUIRES: the caller has stored it beside the pointer. Both functions only try locks and never
/// wait.
Dropped drop_border(WorkerContext& worker, StorageControl& storage, const Link& link,
                    BorderPage* page, SnapshotPointer snapshot, uint64_t epoch);
Dropped drop_interior(WorkerContext& worker, StorageControl& storage, const Link& link,
                      InteriorPage* page, SnapshotPointer snapshot, uint64_t epoch);

}  // namespace atolldb
