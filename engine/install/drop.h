// Functions that array and Master-tree installers share for dropping volatile pages. Rules R1, R8,
// R43.
#pragma once

#include <cstdint>

#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/mastertree/page_lock.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Returns whether the snapshot of `snapshot_epoch` contains every change that `vid` stands for
/// (R8). A VID with ordinal 0 stands for no commit. For such a VID it suffices that the transaction
/// that reserved the record has ended.
inline bool is_in_snapshot(Vid vid, uint64_t snapshot_epoch, const EpochBlock& epochs) {
  if (fault::drop_later_changes) return true;
  if (vid.ordinal() != 0) return vid.epoch() <= snapshot_epoch;
  // Acquire pairs with the coordinator's release store: all commits of that epoch have ended.
  return vid.epoch() <= epochs.settled.load(std::memory_order_acquire);
}

/// Returns whether the snapshot contains everything up to `max_removed_vid`, the newest removed
/// version of a page's range (R43). In a copied-up page that VID has ordinal 0, but stands for
/// commits.
inline bool is_removed_in_snapshot(uint64_t max_removed_vid, uint64_t snapshot_epoch) {
  return Vid(max_removed_vid).epoch() <= snapshot_epoch || fault::drop_later_changes;
}

/// Returns a null word for the next drop. It differs from all null words before it (R1).
inline VolatilePointer next_null(StorageControl& storage) {
  if (fault::drop_without_count) return {};
  // Relaxed: the counter orders no other access.
  return VolatilePointer::null_of(storage.drop_count.fetch_add(1, std::memory_order_relaxed) + 1);
}

/// Replaces the snapshot page beside a null volatile word by `page`, which has the same content.
/// Both may have pointers. A copy-up of the old page may be in progress. It would install pointers
/// to older snapshots that no installer reports. Therefore the function also changes the null word,
/// so that such a copy-up fails (R1). Returns false if a copy-up came first, so that the pointer
/// has a volatile page now.
inline bool replace_cold(StorageControl& storage, DualPointer& pointer, VolatilePointer seen,
                         SnapshotPointer page) {
  DCHECK(seen.is_null() && !page.is_null());
  // Release: the snapshot word is stored before the volatile word (R2).
  pointer.snapshot_word.store(page.word(), std::memory_order_release);
  uint64_t expected = seen.word();
  return pointer.volatile_word.compare_exchange_strong(
      expected, next_null(storage).word(), std::memory_order_acq_rel, std::memory_order_acquire);
}

/// Raises the newest removed version of a page after a page below it was dropped (R8, R43).
/// REQUIRES: the page lock is held.
inline void raise_max_removed_vid(PageHeader& page, uint64_t version) {
  DCHECK(page.lock.is_locked() && !page.version().is_moved());
  if (fault::max_removed_vid_forgets_elided) return;
  // Relaxed: readers hold the same lock, or use the value as a hint.
  if (page.max_removed_vid.load(std::memory_order_relaxed) < version) {
    page.max_removed_vid.store(version, std::memory_order_relaxed);
  }
}

/// The locks of all records of a page. The class only tries locks and never waits. `HeadOf` returns
/// the RecordHead of a slot.
template <typename HeadOf>
class RecordLocks {
 public:
  RecordLocks(WorkerContext& worker, HeadOf head_of) : worker_(worker), head_of_(head_of) {}
  RecordLocks(const RecordLocks&) = delete;
  RecordLocks& operator=(const RecordLocks&) = delete;
  ~RecordLocks() {
    while (held_ > 0) {
      --held_;
      worker_.locker().unlock(head_of_(held_)->lock, block(held_));
    }
  }
  /// Locks the records of the first `count` slots. Returns false if another thread holds a lock.
  /// REQUIRES: the page lock is held.
  bool try_all(uint32_t count) {
    CHECK(held_ == 0 && kFirstRecordBlock + count <= kSystemLockBlocks);
    for (; held_ < count && !fault::drop_unlocked_records; ++held_) {
      RecordHead* head = head_of_(held_);
      DCHECK(page_of(head)->lock.is_locked());
      if (!worker_.locker().try_lock(head->lock, block(held_), worker_.name_of(head))) return false;
    }
    return true;
  }

 private:
  uint32_t block(uint32_t slot) const {
    return worker_.first_system_block() + kFirstRecordBlock + slot;
  }

  WorkerContext& worker_;
  HeadOf head_of_;
  uint32_t held_ = 0;
};

/// Result of an attempt to drop a volatile page of a Master-tree.
enum class Dropped : uint8_t {
  yes,
  changed,  // the page holds more than the snapshot, or has volatile pages below it
  busy,     // another thread holds a lock
};

/// Checks without locks whether the page must be retained. The result is a hint. Returns true if:
/// * the snapshot of `epoch` lacks a change of the page,
/// * the page has volatile pages below it that a drop does not include, or
/// * it is empty, unless `drops_empty`. A border page without live records is empty, and so is an
///   interior page that leads to one border page without records only.
bool seems_needed(const WorkerContext& worker, BorderPage* page, uint64_t epoch, bool drops_empty);
bool seems_needed(const WorkerContext& worker, InteriorPage* page, uint64_t epoch,
                  bool drops_empty);

/// Both functions drop `page`, to which `link` leads. `page` is not the root of a storage.
/// `snapshot`: the page of exactly the same range in the snapshot of `epoch`; for the root of a
/// layer, the layer's root there.
/// `drops_empty`: also drops an empty page, which no merge can remove (R71). Of border pages, only
/// one without tombstones.
/// REQUIRES: the caller has stored it beside the pointer. Both functions only try locks and never
/// wait.
Dropped drop_border(WorkerContext& worker, StorageControl& storage, const Link& link,
                    BorderPage* page, SnapshotPointer snapshot, uint64_t epoch, bool drops_empty);
/// Also drops the empty pages below `page`, and sets `pages` to the number of dropped pages. A
/// merge made them after the snapshot, so the snapshot has no pages of their ranges. But it has the
/// range of `page`, and therefore no record in them.
Dropped drop_interior(WorkerContext& worker, StorageControl& storage, const Link& link,
                      InteriorPage* page, SnapshotPointer snapshot, uint64_t epoch,
                      bool drops_empty, uint32_t& pages);

}  // namespace atolldb
