#include "engine/install/install.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>

#include "engine/format/array_page.h"
#include "engine/format/stand_in.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/install/drop.h"
#include "engine/mastertree/page_lock.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

// A leaf's records are all locked at once. The bound holds even for records without payload.
static_assert((kPageBytes - sizeof(ArrayPage)) / sizeof(RecordHead) <= RecordLocks::kMost);

/// Installs a snapshot in one array. The installer addresses pages by level and number, so that it
/// can find them again after each `enter`. The root is number 0 of the top level and is never
/// dropped.
///
/// It stores snapshot words without locks. Pages of an array are never split, merged or replaced.
/// No other thread stores these snapshot words once their page can be found (R44). Copy-ups change
/// volatile words only, by compare-and-swap from null.
///
/// Installers of other parts visit other children of the root. The parts share only the root page,
/// whose lock they wait for.
class ArrayInstaller {
 public:
  ArrayInstaller(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                 InstallReport& report)
      : worker_(worker),
        storage_(storage),
        storage_id_(storage.id),
        task_(task),
        report_(report),
        shape_(storage.record_count, storage.payload_bytes),
        top_(shape_.levels - 1) {}

  Status run() {
    Status status = enter();
    if (status == Status::ok) {
      const bool is_first = task_.part.low == 0;
      const VolatilePointer root =
          is_first ? place(storage_.root, task_.root, top_) : storage_.root.load_acquire();
      if (!root.is_null() && top_ > 0) status = visit(top_, 0, task_.root);
    }
    // A dropped storage has lost all its pointers, so nothing is left to install.
    return status == Status::storage_not_found ? Status::ok : status;
  }

 private:
  using Matches = std::array<SnapshotPointer, kArrayFanout>;

  Status enter() { return begin_turn(worker_, storage_, storage_id_, task_); }

  /// Returns the volatile page of a level above the leaves, or null if there is none.
  ArrayInterior* find(uint32_t level, uint64_t number) {
    DCHECK(level > 0 && level <= top_ && (level < top_ || number == 0));
    DualPointer* pointer = &storage_.root;
    if (level < top_) {
      ArrayInterior* parent = find(level + 1, number / kArrayFanout);
      if (parent == nullptr) return nullptr;
      pointer = &parent->children[number % kArrayFanout];
    }
    const VolatilePointer word = pointer->load_acquire();
    return word.is_null() ? nullptr : interior(word, level);
  }
  ArrayInterior* interior(VolatilePointer word, uint32_t level) {
    PageHeader* page = worker_.view().resolve(word);
    DCHECK(page->type == PageType::array_interior && page->level == level);
    return reinterpret_cast<ArrayInterior*>(page);
  }

  /// Returns whether a child of a page at `level` belongs to the part that is installed.
  bool is_own_child(uint32_t level, uint32_t child) const {
    return level < top_ || task_.part.contains(child * shape_.records_below(level - 1));
  }

  /// Reads the pointers to the children of snapshot page `match`, which is above the leaf level.
  Status read_children(SnapshotPointer match, Matches& children) {
    children.fill({});
    if (match.is_null()) return Status::ok;
    if (is_stand_in(match)) return Status::snapshot_unreadable;
    const PageHeader* page = nullptr;
    const Status status = worker_.snapshot_page(match, page);
    const auto* from = reinterpret_cast<const ArrayInterior*>(page);
    for (uint32_t i = 0; i < kArrayFanout && status == Status::ok; ++i) {
      children[i] =
          SnapshotPointer(from->children[i].snapshot_word.load(std::memory_order_relaxed));
    }
    worker_.leave_snapshots();
    return status;
  }

  /// Visits all pages below this page, then drops the page itself.
  Status visit(uint32_t level, uint64_t number, SnapshotPointer match) {
    Matches matches;
    Status status = read_children(match, matches);
    if (status == Status::snapshot_unreadable) return keep_below(level, number);
    if (status == Status::ok) status = enter();
    if (status != Status::ok) return status;
    ArrayInterior* page = find(level, number);
    if (page == nullptr) return Status::ok;
    std::bitset<kArrayFanout> is_warm;
    for (uint32_t i = 0; i < kArrayFanout; ++i) {
      if (!is_own_child(level, i)) continue;
      is_warm[i] = !place(page->children[i], matches[i], level - 1).is_null();
      if (is_warm[i] && level == 1) drop_leaf(*page, page->children[i], matches[i]);
    }
    for (uint32_t i = 0; i < kArrayFanout && level > 1; ++i) {
      if (!is_warm[i]) continue;
      status = visit(level - 1, number * kArrayFanout + i, matches[i]);
      if (status != Status::ok) return status;
    }
    return level == top_ ? Status::ok : drop_interior(level, number, match, matches);
  }

  /// Handles a snapshot page that cannot be read (R56). Volatile pages are retained. Pointers
  /// without a volatile page still lead to older snapshots, which the report names.
  Status keep_below(uint32_t level, uint64_t number) {
    const Status status = enter();
    if (status != Status::ok) return status;
    const ArrayInterior* page = find(level, number);
    if (page == nullptr) return Status::ok;
    std::bitset<kArrayFanout> is_warm;
    for (uint32_t i = 0; i < kArrayFanout; ++i) {
      is_warm[i] = !page->children[i].load_acquire().is_null();
      const SnapshotPointer before(page->children[i].snapshot_word.load(std::memory_order_relaxed));
      if (!is_warm[i]) report_left(before, report_);
    }
    for (uint32_t i = 0; i < kArrayFanout && level > 1; ++i) {
      if (!is_warm[i]) continue;
      const Status below = keep_below(level - 1, number * kArrayFanout + i);
      if (below != Status::ok) return below;
    }
    return Status::ok;
  }

  /// Stores `match`, the snapshot page of the same range, beside a pointer to a page of this level.
  /// Returns the volatile word.
  VolatilePointer place(DualPointer& pointer, SnapshotPointer match, uint32_t level) {
    VolatilePointer word = pointer.load_acquire();
    // Relaxed: words that earlier installers stored are visible to this one.
    const SnapshotPointer before(pointer.snapshot_word.load(std::memory_order_relaxed));
    if (word.is_null() && match.is_null()) {
      report_left(before, report_);
      return word;
    }
    ++(match.is_null() ? report_.unmatched : report_.installed);
    if (before == match) return word;
    if (!word.is_null() || level == 0) {
      // Release: the snapshot word is stored before the null word that drops the page (R2).
      pointer.snapshot_word.store(match.word(), std::memory_order_release);
    } else if (!replace_cold(storage_, pointer, word, match)) {
      word = pointer.load_acquire();
    }
    return word;
  }

  // -- Dropping (R8) ------------------------------------------------------------------------------

  /// Returns whether the snapshot contains all changes of the page. `highest`: the newest
  /// version that the parent records as removed when the page is dropped (R43).
  bool is_covered(ArrayLeaf& leaf, uint64_t& highest) {
    highest = leaf.header.max_removed_vid.load(std::memory_order_relaxed);
    if (!is_removed_in_snapshot(highest, task_.epoch)) return false;
    for (uint32_t slot = 0; slot < shape_.records_per_leaf; ++slot) {
      // Without the record locks the result is only a hint.
      const Vid vid = leaf.record(slot, shape_.record_bytes)->load_acquire();
      if (!is_in_snapshot(vid, task_.epoch, worker_.view().control->epochs)) return false;
      highest = std::max(highest, vid.version());
    }
    return true;
  }

  void drop_leaf(ArrayInterior& parent, DualPointer& pointer, SnapshotPointer match) {
    const VolatilePointer word = pointer.load_acquire();
    if (word.is_null() || match.is_null()) return;
    // R56: the page that a stand-in replaces is unreadable. Only the volatile page has its records.
    if (is_stand_in(match) && !fault::drop_onto_stand_ins) return;
    auto* leaf = reinterpret_cast<ArrayLeaf*>(worker_.view().resolve(word));
    DCHECK(leaf->header.type == PageType::array_leaf && leaf->header.level == 0);
    uint64_t highest = 0;
    // Most hot pages have changed since the snapshot. This check finds that without a lock.
    if (!is_covered(*leaf, highest) || !may_drop(task_, leaf->header, report_)) return;
    {
      ScopedLock parent_lock;
      ScopedLock leaf_lock;
      RecordLocks record_locks(worker_);
      if (!lock_pages(parent, parent_lock, *leaf, leaf_lock) ||
          !try_lock_records(*leaf, record_locks)) {
        ++report_.busy;
        return;
      }
      if (parent.header.version().is_moved() || !is_covered(*leaf, highest)) return;
      DCHECK(!leaf->header.version().is_moved());
      leaf->header.set_version(moved(leaf->header));
      record_locks.mark_moved();
      unlink(parent, pointer, word, highest);
    }
    worker_.pages().retire(&leaf->header);
  }

  /// Drops a page above the leaves if no volatile page is below it.
  Status drop_interior(uint32_t level, uint64_t number, SnapshotPointer match,
                       const Matches& matches) {
    const Status status = enter();
    if (status != Status::ok) return status;
    CHECK(level < top_);
    ArrayInterior* parent = find(level + 1, number / kArrayFanout);
    if (parent == nullptr) return Status::ok;
    DualPointer& pointer = parent->children[number % kArrayFanout];
    const VolatilePointer word = pointer.load_acquire();
    if (word.is_null() || match.is_null()) return Status::ok;
    ArrayInterior* page = interior(word, level);
    const uint64_t max_removed_vid = page->header.max_removed_vid.load(std::memory_order_relaxed);
    if (!is_bare(*page, matches) || !is_removed_in_snapshot(max_removed_vid, task_.epoch) ||
        !may_drop(task_, page->header, report_)) {
      return Status::ok;
    }
    {
      ScopedLock parent_lock;
      ScopedLock page_lock;
      if (!lock_pages(*parent, parent_lock, *page, page_lock)) {
        ++report_.busy;
        return Status::ok;
      }
      if (parent->header.version().is_moved() || !freeze(*page)) return Status::ok;
      reach(SyncPoint::frozen_words);
      DCHECK(!page->header.version().is_moved());
      page->header.set_version(moved(page->header));
      unlink(*parent, pointer, word, max_removed_vid);
    }
    worker_.pages().retire(&page->header);
    return Status::ok;
  }

  /// Locks two pages. Returns false if another thread holds a lock. It waits for a lock only if the
  /// array is divided and `parent` is the root: installers of other parts lock the root often. This
  /// thread then holds no other lock.
  bool lock_pages(ArrayPage& parent, ScopedLock& parent_lock, ArrayPage& page,
                  ScopedLock& page_lock) {
    const bool waits = parent.header.level == top_ && is_divided_;
    const bool is_locked =
        waits ? parent_lock.lock(worker_, parent.lock, worker_.name_of(&parent.lock))
              : parent_lock.try_lock(worker_, parent.lock);
    return is_locked && page_lock.try_lock(worker_, page.lock);
  }

  bool try_lock_records(ArrayLeaf& leaf, RecordLocks& locks) const {
    for (uint32_t slot = 0; slot < shape_.records_per_leaf; ++slot) {
      if (!locks.try_lock(leaf.record(slot, shape_.record_bytes))) return false;
    }
    return true;
  }

  /// Returns whether no volatile page is below this page and its pointers lead to pages of this
  /// snapshot.
  static bool is_bare(const ArrayInterior& page, const Matches& matches) {
    for (uint32_t i = 0; i < kArrayFanout; ++i) {
      const DualPointer& child = page.children[i];
      // Relaxed: only installers store these words.
      const uint64_t snapshot = child.snapshot_word.load(std::memory_order_relaxed);
      if (!child.load_acquire().is_null() || snapshot != matches[i].word()) return false;
    }
    return true;
  }

  /// Freezes all null pointers, so that no copy-up installs a page below this one (R3). Returns
  /// false if a copy-up came first; then all words are as before.
  static bool freeze(ArrayInterior& page) {
    if (fault::drop_unfrozen) return true;
    uint32_t frozen = 0;
    for (; frozen < kArrayFanout; ++frozen) {
      std::atomic<uint64_t>& word = page.children[frozen].volatile_word;
      uint64_t seen = word.load(std::memory_order_acquire);
      const VolatilePointer child(seen);
      // acq_rel pairs with the compare-and-swap of a copy-up: one of the two fails.
      if (!child.is_null() ||
          !word.compare_exchange_strong(seen, child.frozen().word(), std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        break;
      }
    }
    if (frozen == kArrayFanout) return true;
    while (frozen-- > 0) {
      std::atomic<uint64_t>& word = page.children[frozen].volatile_word;
      // Only this installer changes a frozen word.
      const VolatilePointer child(word.load(std::memory_order_relaxed));
      word.store(child.thawed().word(), std::memory_order_release);
    }
    return false;
  }

  static PageVersion moved(const PageHeader& page) {
    return page.version().with_status(PageVersion::kMoved | PageVersion::kDropped);
  }

  /// Drops the page of `word`, to which `pointer` leads. `highest`: newest version that the parent
  /// records as removed (R43).
  void unlink(ArrayInterior& parent, DualPointer& pointer, VolatilePointer word, uint64_t highest) {
    // Only this installer drops pages of its part, so the pointer still leads to the page.
    DCHECK(pointer.load_acquire() == word && !word.is_null());
    raise_max_removed_vid(parent, highest);
    ++report_.dropped;
    // Release pairs with `load_both`: a reader that loads the null word also sees the snapshot
    // word, and that the records have moved.
    pointer.volatile_word.store(next_null(storage_, false).word(), std::memory_order_release);
  }

  WorkerContext& worker_;
  StorageControl& storage_;
  const uint32_t storage_id_;
  const InstallTask& task_;
  InstallReport& report_;
  const ArrayShape shape_;
  const uint32_t top_;
  const bool is_divided_ = task_.part.low != 0 || !task_.part.high_is_end;
};

}  // namespace

Status install_array(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                     InstallReport& report) {
  return ArrayInstaller(worker, storage, task, report).run();
}

}  // namespace atolldb
