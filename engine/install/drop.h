// Functions that array and Master-tree installers share for dropping volatile pages. Rules R1, R8,
// R43.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/format/page_lock_word.h"
#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/mastertree/page_lock.h"
#include "engine/transaction/covered.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Returns a null word for the next drop. It differs from all null words before it (R1).
/// `has_delta`: the delta tree may have records of the pointer's range (R76).
inline VolatilePointer next_null(StorageControl& storage, bool has_delta) {
  if (fault::drop_without_count) return {};
  // Relaxed: the counter orders no other access.
  const VolatilePointer null =
      VolatilePointer::null_of(storage.drop_count.fetch_add(1, std::memory_order_relaxed) + 1);
  return has_delta && !fault::drop_forgets_delta_mark ? null.with_delta() : null;
}

/// Replaces the snapshot page beside a null volatile word by `page`, which has the same content.
/// Both pages may have pointers. If a copy-up of the old page is in progress, it would install
/// pointers to older snapshots that no installer reports. Therefore the function also changes the
/// null word, so that such a copy-up fails (R1). The changed word also tells transactions that add
/// records to the delta tree that the snapshot page has changed (R77). Returns false if another
/// thread has changed the word: the pointer has a volatile page or a delta mark now.
inline bool replace_cold(StorageControl& storage, DualPointer& pointer, VolatilePointer seen,
                         SnapshotPointer page) {
  DCHECK(seen.is_null() && !seen.is_frozen() && !page.is_null());
  // Release: the snapshot word is stored before the volatile word (R2).
  pointer.snapshot_word.store(page.word(), std::memory_order_release);
  uint64_t expected = seen.word();
  return pointer.volatile_word.compare_exchange_strong(
      expected, next_null(storage, seen.has_delta()).word(), std::memory_order_acq_rel,
      std::memory_order_acquire);
}

/// Raises the newest removed version of a page after a page below it was dropped (R8, R43).
/// `Page` is ArrayPage or TreePage. REQUIRES: the page lock is held.
template <typename Page>
void raise_max_removed_vid(Page& page, uint64_t version) {
  DCHECK(page.lock.is_locked() && !page.header.version().is_moved());
  if (fault::max_removed_vid_forgets_elided) return;
  // Relaxed: readers hold the same lock, or use the value as a hint.
  if (page.header.max_removed_vid.load(std::memory_order_relaxed) < version) {
    page.header.max_removed_vid.store(version, std::memory_order_relaxed);
  }
}

/// Counts the pages that a thread frees during the lifetime of the object.
class FreedPages {
 public:
  explicit FreedPages(WorkerContext& worker) : metrics_(worker.metrics()), before_(balance()) {}
  /// Returns how many more pages were retired than taken, without `others` of them; at least 0.
  uint64_t count(uint64_t others) const {
    // The unsigned difference wraps around if more pages were taken than retired.
    const auto freed = static_cast<int64_t>(balance() - before_ - others);
    return static_cast<uint64_t>(std::max<int64_t>(0, freed));
  }

 private:
  uint64_t balance() const { return metrics_.pages_retired.get() - metrics_.pages_allocated.get(); }

  const WorkerMetrics& metrics_;
  const uint64_t before_;
};

/// Holds locks of records whose pages are locked. The class only tries locks and never waits.
class RecordLocks {
 public:
  /// Maximum number of locks.
  static constexpr uint32_t kMost = 768;

  explicit RecordLocks(WorkerContext& worker) : worker_(worker) {}
  RecordLocks(const RecordLocks&) = delete;
  RecordLocks& operator=(const RecordLocks&) = delete;
  ~RecordLocks() {
    while (count_ > 0 && is_locking_) {
      --count_;
      worker_.locker().unlock(records_[count_]->lock);
    }
  }
  /// Returns false if another thread holds the lock. REQUIRES: the lock of the record's page is
  /// held.
  bool try_lock(RecordHead* record) {
    DCHECK(lock_of(page_of(record))->is_locked());
    CHECK(count_ < kMost);
    if (is_locking_ && !worker_.locker().try_lock(record->lock)) return false;
    records_[count_++] = record;
    return true;
  }
  /// Marks all locked records as moved.
  void mark_moved() {
    for (uint32_t i = 0; i < count_; ++i) {
      std::atomic<uint64_t>& vid = records_[i]->vid;
      // Release: the lock of the record is released only after this store. A verifying worker reads
      // the lock before the VID (CommitProtocol::probe).
      vid.store(vid.load(std::memory_order_relaxed) | Vid::kMoved, std::memory_order_release);
    }
  }

 private:
  WorkerContext& worker_;
  const bool is_locking_ = !fault::drop_unlocked_records;
  uint32_t count_ = 0;
  std::array<RecordHead*, kMost> records_;
};

/// Result of an attempt to drop a volatile page of a Master-tree.
enum class Dropped : uint8_t {
  yes,
  changed,  // the page holds more than the snapshot, or has volatile pages below it
  busy,     // another thread holds a lock
};

/// One page that an installer may drop. It is not the root of a storage.
struct DropTask {
  Link link;
  TreePage* page;  // page to which `link` leads
  /// The page of exactly the same range in the snapshot of `epoch`; for the root of a layer, the
  /// layer's root there. The installer has stored it beside the pointer.
  SnapshotPointer snapshot;
  uint64_t epoch;
  bool drops_empty;  // drop even if no record is in or below it: no merge can remove it (R71)
  bool waits;        // wait for the lock of the link's holder, which other installers may hold
  bool drops_below;  // drop also the pages below for whose ranges the snapshot has no pages (R71)
};

/// Checks without locks whether the page must be retained. The result is a hint. Returns true if at
/// least one of these holds:
/// * The snapshot lacks a change of the page.
/// * The page has volatile pages below it that a drop does not include.
/// * The page has no living record in it or below it, and `drops_empty` is false.
/// Appends to `below` the pages that a drop includes.
bool seems_needed(WorkerContext& worker, const DropTask& task, std::vector<PageHeader*>& below);

/// Drops the page, with the pages below it that the drop includes (R71). Sets `pages` to the number
/// of dropped pages. Only tries locks, apart from the first one if `task.waits`. REQUIRES: the
/// caller holds no lock.
Dropped drop_tree_page(WorkerContext& worker, StorageControl& storage, const DropTask& task,
                       uint32_t& pages);

}  // namespace atolldb
