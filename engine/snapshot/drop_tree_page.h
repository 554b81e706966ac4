// Dropping one volatile page of a Master-tree onto the snapshot page that says the same (R8).
#pragma once

#include <cstdint>

#include "engine/mastertree/descent.h"
#include "engine/snapshot/drop.h"

namespace atolldb {

enum class Dropped : uint8_t {
  yes,
  changed,  // it holds more than the snapshot, or pages below it are still there
  busy,     // somebody else held a lock
};

/// A first look, without locks: whether the page may have to stay, since it is not in the snapshot
/// of this epoch, or has volatile pages below it, or no living record (see drop_border).
bool seems_needed(const WorkerContext& worker, BorderPage* page, uint64_t epoch);
bool seems_needed(const WorkerContext& worker, InteriorPage* page, uint64_t epoch);

/// `link` leads to `page`, which is not a storage's root; `snapshot`: the page of the very same
/// range, or, for the root of a layer, its root, as the snapshot of this epoch has it, which the
/// caller has stored beside the pointer. Never waits.
Dropped drop_border(WorkerContext& worker, StorageControl& storage, const Link& link,
                    BorderPage* page, SnapshotPointer snapshot, uint64_t epoch);
Dropped drop_interior(WorkerContext& worker, StorageControl& storage, const Link& link,
                      InteriorPage* page, SnapshotPointer snapshot, uint64_t epoch);

}  // namespace atolldb
