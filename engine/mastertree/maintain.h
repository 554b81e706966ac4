// Space reclamation after deletes: compaction of border pages (R45) and merging of empty ones
// (R46). Runs as system transactions between user transactions, prompted by hints.
#pragma once

#include <cstdint>
#include <span>

#include "engine/mastertree/descent.h"
#include "engine/transaction/hint_queue.h"

namespace atolldb {

/// Queues a hint that `page` has tombstones. `prefix`: the whole slices that lead to its layer.
void push_dead_hint(WorkerContext& worker, const TreePage* page, std::span<const std::byte> prefix,
                    uint64_t slice);

/// Queues a hint for a record that a commit has deleted. REQUIRES: the begin epoch still protects
/// the record's page.
void record_erased(WorkerContext& worker, const RecordHead* record, std::span<const std::byte> key);

/// Compacts the page that the hint names if at least half of its records are removable. Merges it
/// with its neighbours if it is empty. `prefix` is that of the hint. REQUIRES: the worker is
/// between transactions, and its begin epoch is published.
void maintain(WorkerContext& worker, const Hint& hint, std::span<const std::byte> prefix);

/// Merges runs of empty pages around `slice` in one layer, and shortens the layer's root. Does a
/// bounded number of rounds.
void merge_around(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice);

}  // namespace atolldb
