// Locks of neighbouring border pages below one parent, and of all their records, for folds (R78)
// and packs (R101).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "engine/format/tree_page.h"
#include "engine/mastertree/page_lock.h"
#include "shared/base/check.h"

namespace atolldb {

/// Only tries locks (R22). The destructor releases them: records first, then pages, then the
/// parent, then the page that holds the parent's link.
class RunLocks {
 public:
  static constexpr uint32_t kMaxPages = 16;
  static constexpr uint32_t kMaxRecords = 768;

  RunLocks(WorkerContext& worker, StorageControl& storage) : worker_(worker), storage_(storage) {}
  RunLocks(const RunLocks&) = delete;
  RunLocks& operator=(const RunLocks&) = delete;
  ~RunLocks() {
    while (record_count_ > 0) {
      --record_count_;
      worker_.locker().unlock(records_[record_count_]->head.lock);
    }
  }

  /// Locks the parent. Returns false if it was replaced.
  bool lock_parent(InteriorPage* parent) {
    if (!parent_lock_.try_lock_page(worker_, parent)) return false;
    return !parent->header.version().is_moved();
  }
  /// Locks the page that holds the link to the parent. Returns false if the link leads to another
  /// page. Callers take this lock late, because many parents share it.
  bool lock_holder(const Link& link, const InteriorPage* parent) {
    DCHECK(parent->lock.is_locked());
    return holder_lock_.try_lock_holder(worker_, storage_, link) && link_leads_to(link, parent);
  }

  /// Locks the next page of the run. Returns null if the child is no volatile border page, or has
  /// moved.
  BorderPage* lock_child(const DualPointer& child) {
    DCHECK(page_count_ < kMaxPages);
    const VolatilePointer word = child.load_acquire();
    if (word.is_null() || word.is_frozen()) return nullptr;
    TreePage* page = tree_page(worker_.view().resolve(word));
    if (!page->is_border() || !page_locks_[page_count_].try_lock_page(worker_, page)) {
      return nullptr;
    }
    pages_[page_count_++] = page;
    DCHECK(page_count_ == 1 || pages_[page_count_ - 2]->high == page->low);
    const PageVersion version = page->header.version();
    CHECK(version.count() <= border_page(page)->slot_capacity());
    max_removed_vid_ = std::max(max_removed_vid_, max_removed_vid_of(*page));
    return version.is_moved() ? nullptr : border_page(page);
  }

  /// Locks a record of a locked page. Returns false if it is locked, or if there are too many.
  bool lock_record(TreeRecord* record) {
    if (record_count_ == kMaxRecords) return false;
    DCHECK(tree_page(page_of(record))->lock.is_locked());
    if (!worker_.locker().try_lock(record->head.lock)) return false;
    records_[record_count_++] = record;
    return true;
  }

  /// Marks all locked records as moved (R7).
  void mark_records_moved() {
    for (TreeRecord* record : std::span(records_).first(record_count_)) {
      std::atomic<uint64_t>& vid = record->head.vid;
      vid.store(vid.load(std::memory_order_relaxed) | Vid::kMoved, std::memory_order_release);
    }
  }

  std::span<TreePage* const> pages() const { return std::span(pages_).first(page_count_); }
  uint32_t record_count() const { return record_count_; }
  /// Returns the newest removed version of the locked pages, and of the removed records (R43).
  uint64_t max_removed_vid() const { return max_removed_vid_; }
  void add_removed(Vid vid) { max_removed_vid_ = std::max(max_removed_vid_, vid.version()); }

 private:
  WorkerContext& worker_;
  StorageControl& storage_;
  uint32_t page_count_ = 0;
  uint32_t record_count_ = 0;
  uint64_t max_removed_vid_ = 0;
  std::array<TreePage*, kMaxPages> pages_;
  std::array<TreeRecord*, kMaxRecords> records_;
  // Declared last, so they are destroyed first, in this order: run, parent, holder of the parent.
  ScopedLock holder_lock_;
  ScopedLock parent_lock_;
  std::array<ScopedLock, kMaxPages> page_locks_;
};

}  // namespace atolldb
