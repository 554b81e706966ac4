// Drops one volatile page of a Master-tree if the snapshot page has the same content (R8).
#include "engine/install/drop.h"

#include <algorithm>
#include <array>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// The pointers of a page that the installer is about to drop. All are null and frozen, so no
/// worker can install a page there (R3). The destructor unfreezes them unless `keep` was called.
class FrozenNulls {
 public:
  ~FrozenNulls() {
    for (uint32_t i = 0; i < count_; ++i) {
      std::atomic<uint64_t>& word = pointers_[i]->volatile_word;
      // No other thread changes a frozen word, because this thread holds the page lock.
      word.store(VolatilePointer(word.load(std::memory_order_relaxed)).thawed().word(),
                 std::memory_order_release);
    }
  }
  /// Freezes a pointer. Returns false if it has a volatile page.
  bool add(DualPointer& pointer) {
    uint64_t word = pointer.volatile_word.load(std::memory_order_relaxed);
    if (!VolatilePointer(word).is_null()) return false;
    // Compare-and-swap, because workers install pages without the page lock.
    const uint64_t frozen = VolatilePointer(word).frozen().word();
    if (!pointer.volatile_word.compare_exchange_strong(word, frozen, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed)) {
      return false;
    }
    CHECK(count_ < pointers_.size());
    pointers_[count_++] = &pointer;
    return true;
  }
  void keep() { count_ = 0; }

 private:
  std::array<DualPointer*, std::max(kInteriorCapacity, kBorderSlotBound)> pointers_;
  uint32_t count_ = 0;
};

/// Locks the page and the page that holds the link. Checks that both are unchanged: the link leads
/// to the page, and the snapshot page is beside it.
class Locked {
 public:
  Locked(WorkerContext& worker, const Link& link, TreePage* page, SnapshotPointer snapshot) {
    CHECK(link.holder != nullptr && link.holder != page);
    if (!holder_.try_lock_page(worker, link.holder, kHolderBlock) ||
        !page_.try_lock_page(worker, page, kPageBlock)) {
      is_busy_ = true;
      return;
    }
    // R44: the snapshot word may have changed since the installer stored it. It may be null, or the
    // word of another slot.
    const uint64_t word = link.pointer->snapshot_word.load(std::memory_order_relaxed);
    is_good_ = link_leads_to(link, page) && !page->header.version().is_moved() &&
               !snapshot.is_null() && word == snapshot.word();
  }
  bool is_busy() const { return is_busy_; }
  bool is_good() const { return is_good_; }

 private:
  ScopedLock holder_;
  ScopedLock page_;
  bool is_busy_ = false;
  bool is_good_ = false;
};

/// The empty pages below a page that the installer is about to drop, with their locks (R71).
class EmptyPages {
 public:
  explicit EmptyPages(WorkerContext& worker) : worker_(worker) {}

  /// Locks the pages below a child of the page. Returns false if a lock is held, or if they are not
  /// empty, or if the snapshot of `epoch` lacks a change of their ranges.
  bool add(TreePage* child, uint64_t epoch) {
    TreePage* chain[TreePath::kMaxLevels];
    uint32_t size = 0;
    if (!leads_to_empty(worker_, child, chain, size, TreePath::kMaxLevels)) return false;
    DCHECK(size > 0 && chain[size - 1]->is_border());
    for (uint32_t i = 0; i < size; ++i) {
      if (count_ == kMaxPages) return false;
      if (!locks_[count_].try_lock_page(worker_, chain[i], kFirstChildBlock + count_)) {
        is_busy_ = true;
        return false;
      }
      pages_[count_++] = chain[i];
      const uint64_t removed = max_removed_vid_of(*chain[i]);
      if (!is_removed_in_snapshot(removed, epoch)) return false;
      latest_ = std::max(latest_, removed);
    }
    // Under the locks the chain must be the same as before, page by page.
    TreePage* again[TreePath::kMaxLevels];
    uint32_t size_again = 0;
    return leads_to_empty(worker_, child, again, size_again, TreePath::kMaxLevels) &&
           std::equal(chain, chain + size, again, again + size_again);
  }

  /// Marks the pages as dropped and retires them. Readers that meet one of them start again at the
  /// root, until the page above them is marked, too.
  void drop() {
    for (uint32_t i = 0; i < count_; ++i) {
      PageHeader& header = pages_[i]->header;
      DCHECK(holds_page(worker_, pages_[i], kFirstChildBlock + i) && !header.version().is_moved());
      header.set_version(header.version().with_status(PageVersion::kMoved | PageVersion::kDropped));
      worker_.pages().retire(&header);
    }
  }

  uint32_t count() const { return count_; }
  uint64_t latest() const { return latest_; }  // newest removed version (R43)
  bool is_busy() const { return is_busy_; }

 private:
  // There are few, because empty neighbours were merged before.
  static constexpr uint32_t kMaxPages = 32;
  static_assert(kFirstChildBlock + kMaxPages <= kSystemLockBlocks);

  WorkerContext& worker_;
  std::array<TreePage*, kMaxPages> pages_;
  std::array<ScopedLock, kMaxPages> locks_;
  uint32_t count_ = 0;
  uint64_t latest_ = 0;
  bool is_busy_ = false;
};

/// Returns whether `pointer` leads to one empty border page only, and the snapshot of `epoch` has
/// all changes of its range. Takes no locks, so the result may be outdated at once.
bool is_empty_below(const WorkerContext& worker, const DualPointer& pointer, uint64_t epoch) {
  const VolatilePointer word = pointer.load_acquire();
  if (word.is_null() || word.is_frozen()) return false;
  TreePage* chain[TreePath::kMaxLevels];
  uint32_t size = 0;
  if (!leads_to_empty(worker, tree_page(worker.view().resolve(word)), chain, size,
                      TreePath::kMaxLevels)) {
    return false;
  }
  return std::all_of(chain, chain + size, [&](const TreePage* page) {
    return is_removed_in_snapshot(max_removed_vid_of(*page), epoch);
  });
}

bool is_covered(const WorkerContext& worker, Vid vid, uint64_t epoch) {
  return !vid.is_being_written() && is_in_snapshot(vid, epoch, worker.view().control->epochs);
}

/// Makes the page unreachable for new readers and retires it.
void unlink(WorkerContext& worker, StorageControl& storage, const Link& link, TreePage* page,
            uint64_t version) {
  const PageVersion before = page->header.version();
  DCHECK(page->header.lock.is_locked() && !before.is_moved());
  DCHECK(link_leads_to(link, page));
  page->header.set_version(before.with_status(PageVersion::kMoved | PageVersion::kDropped));
  raise_max_removed_vid(link.holder->header, version);
  reach(SyncPoint::dropping);
  std::atomic<uint64_t>& snapshot = link.pointer->snapshot_word;
  const uint64_t stored = snapshot.load(std::memory_order_relaxed);
  if (fault::drop_before_install) snapshot.store(0, std::memory_order_release);
  // Release pairs with load_both: the snapshot word was stored before (R2).
  link.pointer->volatile_word.store(next_null(storage).word(), std::memory_order_release);
  reach(SyncPoint::dropped);
  if (fault::drop_before_install) snapshot.store(stored, std::memory_order_release);
  worker.pages().retire(&page->header);
}

}  // namespace

bool seems_needed(const WorkerContext& worker, BorderPage* page, uint64_t epoch, bool drops_empty) {
  if (!is_removed_in_snapshot(page->header.max_removed_vid.load(std::memory_order_relaxed), epoch))
    return true;
  const uint32_t count = page->header.version().count();
  DCHECK(page->is_border() && count <= page->slot_capacity);
  bool has_living = false;
  for (uint32_t slot = 0; slot < count; ++slot) {
    TreeRecord* record = page->record(slot);
    const Vid vid = record->head.load_acquire();
    if (!is_covered(worker, vid, epoch)) return true;
    if (vid.is_next_layer() && !record->next_layer()->load_acquire().is_null()) return true;
    has_living = has_living || vid.is_next_layer() || !vid.is_deleted();
  }
  return !has_living && !(drops_empty && count == 0);
}

bool seems_needed(const WorkerContext& worker, InteriorPage* page, uint64_t epoch,
                  bool drops_empty) {
  if (!is_removed_in_snapshot(page->header.max_removed_vid.load(std::memory_order_relaxed), epoch))
    return true;
  const uint32_t count = page->header.version().count();
  DCHECK(!page->is_border() && count <= kInteriorCapacity);
  uint32_t empty = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (page->children[i].load_acquire().is_null()) continue;
    if (!is_empty_below(worker, page->children[i], epoch)) return true;
    ++empty;
  }
  return empty == count && !drops_empty;
}

Dropped drop_border(WorkerContext& worker, StorageControl& storage, const Link& link,
                    BorderPage* page, SnapshotPointer snapshot, uint64_t epoch, bool drops_empty) {
  Locked locked(worker, link, page, snapshot);
  if (!locked.is_good()) return locked.is_busy() ? Dropped::busy : Dropped::changed;
  RecordLocks records(worker, [&](uint32_t slot) { return &page->record(slot)->head; });
  const uint32_t count = page->header.version().count();
  if (!records.try_all(count)) return Dropped::busy;
  DCHECK(page->is_border() && count <= page->slot_capacity);
  uint64_t latest = page->header.max_removed_vid.load(std::memory_order_relaxed);
  if (!is_removed_in_snapshot(latest, epoch)) return Dropped::changed;
  FrozenNulls layers;
  bool has_living = false;
  for (uint32_t slot = 0; slot < count; ++slot) {
    TreeRecord* record = page->record(slot);
    const Vid vid(record->head.vid.load(std::memory_order_relaxed));
    has_living = has_living || vid.is_next_layer() || !vid.is_deleted();
    if (!is_covered(worker, vid, epoch)) return Dropped::changed;
    if (vid.is_next_layer() && !layers.add(*record->next_layer())) return Dropped::changed;
    // A VID with ordinal 0 stands for no commit.
    if (vid.ordinal() != 0 || vid.is_next_layer()) latest = std::max(latest, vid.version());
  }
  // A page without live records is merged with its neighbours (R46), which requires that they are
  // volatile. If such pages were dropped, the head of a queue would become an ever longer sequence
  // of empty cold pages. The caller names the pages without such neighbours (R71).
  if (!has_living && !(drops_empty && count == 0)) return Dropped::changed;
  layers.keep();
  reach(SyncPoint::frozen_words);
  for (uint32_t slot = 0; slot < count; ++slot) {
    std::atomic<uint64_t>& vid = page->record(slot)->head.vid;
    vid.store(vid.load(std::memory_order_relaxed) | Vid::kMoved, std::memory_order_release);
  }
  unlink(worker, storage, link, page, latest);
  return Dropped::yes;
}

Dropped drop_interior(WorkerContext& worker, StorageControl& storage, const Link& link,
                      InteriorPage* page, SnapshotPointer snapshot, uint64_t epoch,
                      bool drops_empty, uint32_t& pages) {
  Locked locked(worker, link, page, snapshot);
  if (!locked.is_good()) return locked.is_busy() ? Dropped::busy : Dropped::changed;
  const uint64_t max_removed_vid = max_removed_vid_of(*page);
  if (!is_removed_in_snapshot(max_removed_vid, epoch)) return Dropped::changed;
  FrozenNulls children;
  EmptyPages empty(worker);
  uint32_t nulls = 0;
  const uint32_t count = page->header.version().count();
  DCHECK(!page->is_border() && count > 0 && count <= kInteriorCapacity);
  for (uint32_t i = 0; i < count; ++i) {
    if (children.add(page->children[i])) {
      ++nulls;
      continue;
    }
    const VolatilePointer child = page->children[i].load_acquire();
    if (child.is_null() || child.is_frozen()) return Dropped::changed;
    if (!empty.add(tree_page(worker.view().resolve(child)), epoch)) {
      return empty.is_busy() ? Dropped::busy : Dropped::changed;
    }
  }
  if (nulls == 0 && !drops_empty) return Dropped::changed;
  children.keep();
  reach(SyncPoint::frozen_words);
  empty.drop();
  unlink(worker, storage, link, page, std::max(max_removed_vid, empty.latest()));
  pages = 1 + empty.count();
  return Dropped::yes;
}

}  // namespace atolldb
