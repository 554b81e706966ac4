// Reclaiming what deletes leave behind: compaction of border pages (R45) and merging of empty ones
// (R46). System transactions, between user transactions, prompted by hints.
#pragma once

#include <cstdint>
#include <span>

#include "engine/mastertree/descent.h"
#include "engine/transaction/hint_queue.h"

namespace atolldb {

/// Remembers that the page, in the layer that `prefix` (whole slices) leads to, has dead records.
void push_dead_hint(WorkerContext& worker, const TreePage* page, std::span<const std::byte> prefix,
                    uint64_t slice);

/// A commit has deleted this record. Call while its page is still protected by the begin epoch.
void note_erased(WorkerContext& worker, const RecordHead* record, std::span<const std::byte> key);

/// Compacts the page that the hint names if at least half of it is removable, and merges it with
/// its neighbours when it is empty. Call between transactions, with the begin epoch published.
/// `prefix`: the hint's.
void maintain(WorkerContext& worker, const Hint& hint, std::span<const std::byte> prefix);

/// Merges runs of empty pages around `slice` in one layer, and shortens its root. Bounded.
void merge_around(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice);

}  // namespace atolldb
