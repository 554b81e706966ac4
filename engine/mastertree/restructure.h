// Replaces a border page by one or two successors: split (foster twins), compaction (R45), or
// enlargement of a record. All three share the code because each moves every record (R7, R10, R43).
// Space reclamation after deletes runs between user transactions, prompted by hints: compaction of
// border pages, and merging of empty ones (R46).
#pragma once

#include <cstdint>
#include <span>

#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/page_lock.h"
#include "engine/transaction/hint_queue.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// A request to replace a border page: to make room for a record, or to remove tombstones and
/// layers.
struct RestructureRequest {
  /// Room for a new key, if `new_record_bytes` is not zero.
  uint64_t new_slice = 0;
  uint32_t new_record_bytes = 0;
  /// If not null, this record gets at least `grow_capacity` bytes of payload.
  const TreeRecord* grow = nullptr;
  uint32_t grow_capacity = 0;
  /// If true, makes no room for a record, and removes tombstones and empty layers. There is exactly
  /// one successor, unless `collapses_layers` needs two.
  bool compaction_only = false;
  /// If not 0, also removes all records of a page of a delta tree whose changes are in the snapshot
  /// of this epoch (R78). REQUIRES: compaction_only.
  uint64_t drained_epoch = 0;
  /// If true, the only living record of a next layer also takes the slot of the layer (R70). If one
  /// successor has no room for these records, there are two. REQUIRES: compaction_only.
  bool collapses_layers = false;
};

/// Returns the newest removable VID epoch. Tombstones with this epoch or an older one are settled,
/// and were deleted before any running transaction began, so no transaction depends on them (R10).
uint64_t removable_epoch(const WorkerContext& worker);
inline bool is_removable(Vid vid, uint64_t limit) {
  return vid.is_deleted() && !vid.is_next_layer() && vid.epoch() <= limit;
}

/// Number of pages to reserve before the locks (R23): one for each twin.
inline constexpr uint32_t kPagesPerRestructure = 2;

/// Replaces `page`. `txn`: the transaction whose access sets are updated (R13), or null between
/// transactions. REQUIRES: `page_lock` holds `page`, and it is not moved;
/// kPagesPerRestructure pages are reserved.
///
/// Releases `page_lock` before it updates the sets, because they may be large. After ok, phantom
/// and transaction_too_large the page is moved; the last two abort the transaction. The other
/// results leave the page unchanged:
/// - payload_too_long: the records of one slice do not fit a page.
/// - write_conflict: the records will fit once young tombstones can be removed. In a compaction:
///   another thread has locked a record of the page, or a collapse or a drain finds nothing to
///   remove.
/// - cluster_failed.
Status restructure(WorkerContext& worker, Transaction* txn, BorderPage* page,
                   const RestructureRequest& request, ScopedLock& page_lock);

/// Returns the page of the layer below the record, or null if the layer is not a single volatile
/// page that has not moved. REQUIRES: the record leads, or led, to a next layer.
BorderPage* only_page_below(WorkerContext& worker, TreeRecord* record);

/// Returns the only record of a layer whose only page is `root`, if the record is living, or null.
/// The result may be outdated, unless the page and the record are locked.
TreeRecord* lone_record_of(BorderPage* root);

/// Queues a hint that `page` has tombstones, unless it is in a delta tree, where only installers
/// remove records. `prefix`: the whole slices that lead to its layer.
void push_tombstone_hint(WorkerContext& worker, const TreePage* page,
                         std::span<const std::byte> prefix, uint64_t slice);

/// Queues a hint for a record that a commit has deleted. REQUIRES: the begin epoch still protects
/// the record's page.
void record_erased(WorkerContext& worker, const RecordHead* record, std::span<const std::byte> key);

/// Compacts the page that the hint names if at least half of its records are removable, or if a
/// record leads to an empty layer. Merges the page with its neighbours if it is empty. Packs the
/// neighbours of a divided page of a hash storage (R101). `prefix` is that of the hint. REQUIRES:
/// the worker is between transactions, and its begin epoch is published.
void maintain(WorkerContext& worker, const Hint& hint, std::span<const std::byte> prefix);

/// Returns whether the page leads to exactly one empty border page, through interior pages with one
/// child each. Writes the pages of that chain to `chain`, from the top; it has `room` places. Takes
/// no locks, so the result may be outdated at once.
bool leads_to_empty(const WorkerContext& worker, TreePage* page, TreePage** chain, uint32_t& size,
                    uint32_t room);

/// Merges runs of at least `min_run` empty pages around `slice` in one layer, and shortens the
/// layer's root. Does a bounded number of rounds. Returns whether a page was replaced.
bool merge_around(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                  uint32_t min_run = kMinMergeRun);

}  // namespace atolldb
