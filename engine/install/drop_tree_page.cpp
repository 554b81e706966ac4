// Drops a volatile page of a Master-tree if the snapshot has the content of its range (R8, R71).
#include "engine/install/drop.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Maximum number of pages that are dropped together with the page above them. Such a page is
/// empty, or the snapshot has no page of its range. Both result from changes since the snapshot, so
/// there are few.
constexpr uint32_t kMaxPagesBelow = 32;
/// Maximum number of records that are dropped together.
constexpr uint32_t kMaxDroppedRecords = RecordLocks::kMost;
static_assert(kMaxDroppedRecords >= kBorderSlotBound);
/// Maximum number of pointers to cold pages in the pages that are dropped together.
constexpr uint32_t kMaxNulls = 1024;
static_assert(kMaxNulls >= std::max(kInteriorCapacity, kBorderSlotBound));

/// The pointers of the pages that the installer is about to drop. All are null and frozen, so no
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
    CHECK(count_ < pointers_.size());
    uint64_t word = pointer.volatile_word.load(std::memory_order_relaxed);
    if (!VolatilePointer(word).is_null()) return false;
    // Compare-and-swap, because workers install pages without the page lock.
    const uint64_t frozen = VolatilePointer(word).frozen().word();
    if (!pointer.volatile_word.compare_exchange_strong(word, frozen, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed)) {
      return false;
    }
    pointers_[count_++] = &pointer;
    has_delta_ = has_delta_ || VolatilePointer(word).has_delta();
    return true;
  }
  void keep() { count_ = 0; }
  /// Returns whether one of the pointers has a delta mark (R76).
  bool has_delta() const { return has_delta_; }

 private:
  std::array<DualPointer*, kMaxNulls> pointers_;
  uint32_t count_ = 0;
  bool has_delta_ = false;
};

/// Locks the page and the page that holds the link. Checks that both are unchanged: the link leads
/// to the page, and the snapshot page is beside it.
class Locked {
 public:
  Locked(WorkerContext& worker, const DropTask& task) {
    const Link& link = task.link;
    TreePage* const page = task.page;
    CHECK(link.holder != nullptr && link.holder != page);
    const bool has_holder = task.waits ? holder_.lock_page(worker, link.holder)
                                       : holder_.try_lock_page(worker, link.holder);
    if (!has_holder || !page_.try_lock_page(worker, page)) {
      is_busy_ = true;
      return;
    }
    // R44: the snapshot word may have changed since the installer stored it. It may be null, or the
    // word of another slot.
    const uint64_t word = link.pointer->snapshot_word.load(std::memory_order_relaxed);
    is_good_ = link_leads_to(link, page) && !page->header.version().is_moved() &&
               !task.snapshot.is_null() && word == task.snapshot.word();
  }
  bool is_busy() const { return is_busy_; }
  bool is_good() const { return is_good_; }

 private:
  ScopedLock holder_;
  ScopedLock page_;
  bool is_busy_ = false;
  bool is_good_ = false;
};

/// A page that the installer may drop, and the pages below it that are dropped with it (R71): those
/// without a page of their range in the snapshot, and empty ones. The object checks that the
/// snapshot of `epoch` has their content. With `Locks::yes` it takes the locks of all records, and
/// of all pages but the first, from the top down. Without locks its result is a hint.
class DropSet {
 public:
  enum class Locks : uint8_t { no, yes };

  DropSet(WorkerContext& worker, const DropTask& task, Locks locks)
      : worker_(worker), task_(task), locks_(locks), records_(worker) {}

  DropSet(const DropSet&) = delete;
  DropSet& operator=(const DropSet&) = delete;
  ~DropSet() {
    for (ScopedLock& lock : page_locks_) {
      if (fault::thaw_after_unlocking) lock.unlock();
    }
  }

  /// Adds the task's page and what is below it. Returns false if something must be retained, or if
  /// another thread holds a lock. REQUIRES with locks: the lock of the page is held.
  bool add() { return add(task_.page); }

  /// Marks the records, and the pages below the first one, as dropped. Readers that meet one of
  /// them start again at the root, until the page above them is marked, too.
  void mark_dropped() {
    DCHECK(locks_ == Locks::yes && may_be_dropped());
    nulls_.keep();
    reach(SyncPoint::frozen_words);
    records_.mark_moved();
    for (uint32_t i = 0; i < count_; ++i) {
      PageHeader& header = pages_[i]->header;
      DCHECK(holds_page(worker_, pages_[i]) && !header.version().is_moved());
      header.set_version(header.version().with_status(PageVersion::kMoved | PageVersion::kDropped));
    }
  }
  /// Retires the pages below the first one. REQUIRES: no pointer leads to the first page any more
  /// (R9).
  void retire_below() {
    for (uint32_t i = 0; i < count_; ++i) {
      DCHECK(pages_[i]->header.version().is_moved());
      worker_.pages().retire(&pages_[i]->header);
    }
  }

  std::span<TreePage* const> pages_below() const { return {pages_.data(), count_}; }
  /// Returns whether a living record, or `drops_empty`, allows the drop. Pages without living
  /// records are merged with volatile neighbours instead (R46). Dropping them would make the head
  /// of a queue an ever longer sequence of empty cold pages. `drops_empty`: no such neighbours
  /// exist (R71).
  bool may_be_dropped() const { return has_living_ || (task_.drops_empty && record_count_ == 0); }
  bool is_busy() const { return is_busy_; }    // another thread holds a lock
  uint64_t latest() const { return latest_; }  // newest version in these pages (R43)
  bool has_delta() const { return nulls_.has_delta(); }

 private:
  bool add(TreePage* page) {
    if (page->header.version().is_moved()) return false;
    const uint64_t removed = page->header.max_removed_vid.load(std::memory_order_relaxed);
    if (!is_removed_in_snapshot(removed, task_.epoch)) return false;
    latest_ = std::max(latest_, removed);
    return page->is_border() ? add_records(border_page(page)) : add_children(interior_page(page));
  }

  bool add_records(BorderPage* page) {
    DCHECK(locks_ == Locks::no || page->lock.is_locked());
    const uint32_t count = page->header.version().count();
    DCHECK(count <= page->slot_capacity());
    record_count_ += count;
    if (record_count_ > kMaxDroppedRecords) return false;
    for (uint32_t slot = 0; slot < count; ++slot) {
      TreeRecord* record = page->record(slot);
      if (locks_ == Locks::yes && !records_.try_lock(&record->head)) {
        is_busy_ = true;
        return false;
      }
      const Vid vid = record->head.load_acquire();
      if (!is_covered(vid, task_.epoch, worker_.view().control->epochs)) return false;
      if (vid.is_next_layer() && !add_null(*record->next_layer())) return false;
      has_living_ = has_living_ || !vid.is_deleted();
      // A VID with ordinal 0 stands for no commit.
      if (vid.ordinal() != 0 || vid.is_next_layer()) latest_ = std::max(latest_, vid.version());
    }
    return true;
  }

  bool add_children(InteriorPage* page) {
    DCHECK(locks_ == Locks::no || page->lock.is_locked());
    const uint32_t count = page->header.version().count();
    DCHECK(count > 0 && count <= kInteriorCapacity);
    for (uint32_t i = 0; i < count; ++i) {
      if (!add_null(page->children[i]) && !add_child(page->children[i])) return false;
    }
    return true;
  }

  /// Returns whether the pointer has no volatile page. With locks, none can be installed any more.
  bool add_null(DualPointer& pointer) {
    const VolatilePointer word = pointer.load_acquire();
    if (!word.is_null() || word.is_frozen() || null_count_ == kMaxNulls) return false;
    if (locks_ == Locks::yes && !nulls_.add(pointer)) return false;
    ++null_count_;
    has_living_ = true;
    return true;
  }

  bool add_child(const DualPointer& pointer) {
    const VolatilePointer word = pointer.load_acquire();
    if (!task_.drops_below || word.is_null() || word.is_frozen()) return false;
    if (count_ == kMaxPagesBelow) return false;
    TreePage* child = tree_page(worker_.view().resolve(word));
    // A page with a snapshot page is dropped on its own, unless it is empty.
    const bool has_snapshot = pointer.snapshot_word.load(std::memory_order_relaxed) != 0;
    if ((has_snapshot || fault::keep_unmatched_pages) && !is_empty(child)) return false;
    if (locks_ == Locks::yes && !page_locks_[count_].try_lock_page(worker_, child)) {
      is_busy_ = true;
      return false;
    }
    pages_[count_++] = child;
    return add(child);
  }

  bool is_empty(TreePage* page) const {
    TreePage* chain[TreePath::kMaxLevels];
    uint32_t size = 0;
    return leads_to_empty(worker_, page, chain, size, TreePath::kMaxLevels);
  }

  WorkerContext& worker_;
  const DropTask& task_;
  const Locks locks_;
  std::array<TreePage*, kMaxPagesBelow> pages_;
  // These members are destroyed from the last to the first: a drop that fails thaws the words, then
  // unlocks the records, then the pages. If it unlocked the pages first, a worker could replace a
  // page and copy a frozen word. A page installed in the copy would be missing from the thawed word
  // of the moved page (R3).
  std::array<ScopedLock, kMaxPagesBelow> page_locks_;
  RecordLocks records_;
  FrozenNulls nulls_;
  uint32_t count_ = 0;  // number of pages below the first one
  uint32_t record_count_ = 0;
  uint32_t null_count_ = 0;
  uint64_t latest_ = 0;
  bool has_living_ = false;
  bool is_busy_ = false;
};

/// Makes the page unreachable for new readers and retires it. `has_delta`: a pointer in the dropped
/// pages has a delta mark, so the pointer to the page gets it, too (R76).
void unlink(WorkerContext& worker, StorageControl& storage, const Link& link, TreePage* page,
            uint64_t version, bool has_delta) {
  const PageVersion before = page->header.version();
  DCHECK(page->lock.is_locked() && !before.is_moved());
  DCHECK(link_leads_to(link, page));
  page->header.set_version(before.with_status(PageVersion::kMoved | PageVersion::kDropped));
  raise_max_removed_vid(*link.holder, version);
  reach(SyncPoint::dropping);
  std::atomic<uint64_t>& snapshot = link.pointer->snapshot_word;
  const uint64_t stored = snapshot.load(std::memory_order_relaxed);
  if (fault::drop_before_install) snapshot.store(0, std::memory_order_release);
  // Release pairs with load_both: the snapshot word was stored before (R2).
  link.pointer->volatile_word.store(next_null(storage, has_delta).word(),
                                    std::memory_order_release);
  reach(SyncPoint::dropped);
  if (fault::drop_before_install) snapshot.store(stored, std::memory_order_release);
  worker.pages().retire(&page->header);
}

}  // namespace

bool seems_needed(WorkerContext& worker, const DropTask& task, std::vector<PageHeader*>& below) {
  DropSet set(worker, task, DropSet::Locks::no);
  if (!set.add() || !set.may_be_dropped()) return true;
  for (TreePage* page : set.pages_below()) below.push_back(&page->header);
  return false;
}

Dropped drop_tree_page(WorkerContext& worker, StorageControl& storage, const DropTask& task,
                       uint32_t& pages) {
  Locked locked(worker, task);
  if (!locked.is_good()) return locked.is_busy() ? Dropped::busy : Dropped::changed;
  DropSet set(worker, task, DropSet::Locks::yes);
  if (!set.add()) return set.is_busy() ? Dropped::busy : Dropped::changed;
  if (!set.may_be_dropped()) return Dropped::changed;
  set.mark_dropped();
  unlink(worker, storage, task.link, task.page, set.latest(), set.has_delta());
  set.retire_below();
  pages = 1 + static_cast<uint32_t>(set.pages_below().size());
  return Dropped::yes;
}

}  // namespace atolldb
