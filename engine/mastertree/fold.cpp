#include "engine/mastertree/fold.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/replace_run.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/tree_path.h"
#include "engine/transaction/covered.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

constexpr uint32_t kFirstFoldedRecordBlock = kFirstChildBlock + kMaxFoldedPages;
static_assert(kFirstFoldedRecordBlock + kMaxFoldedRecords <= kSystemLockBlocks);

/// One fold. The locks are released by the destructor: records first, then pages, then the parent.
class Fold {
 public:
  Fold(WorkerContext& worker, StorageControl& storage, const Link& link, InteriorPage* parent,
       uint64_t epoch)
      : worker_(worker), storage_(storage), link_(link), parent_(parent), epoch_(epoch) {
    DCHECK(parent->header.is_delta != 0 && parent->header.level == 1 && epoch != 0);
  }
  Fold(const Fold&) = delete;
  Fold& operator=(const Fold&) = delete;
  ~Fold() {
    while (record_count_ > 0) {
      --record_count_;
      worker_.locker().unlock(records_[record_count_]->head.lock, record_block(record_count_));
    }
  }

  bool run(uint64_t slice, uint32_t count, FoldContent& removed) {
    // R23: one page for the records, and one for the parent's successor.
    if (!worker_.reserve_pages(2)) return false;
    if (!holder_lock_.try_lock_holder(worker_, storage_, link_)) return false;
    if (!parent_lock_.try_lock_page(worker_, parent_, kPageBlock)) return false;
    if (parent_->header.version().is_moved() || !link_leads_to(link_, parent_)) return false;
    if (!lock_children(slice, count)) return false;
    if (!fits_folded(kept_count_, kept_bytes_)) return false;
    reach(SyncPoint::publishing_merge);
    publish();
    removed.covered += record_count_ - kept_count_;
    removed.covered_bytes += removed_bytes_;
    return true;
  }

 private:
  uint32_t record_block(uint32_t i) const {
    return worker_.first_system_block() + kFirstFoldedRecordBlock + i;
  }

  /// Locks `count` children, from the one that holds `slice` on.
  bool lock_children(uint64_t slice, uint32_t count) {
    const ChildRanges children(*parent_, parent_->header.version().count());
    while (first_ + 1 < children.size() && !children.range(first_).contains(slice)) ++first_;
    page_count_ = count;
    if (first_ + count > children.size()) return false;
    for (uint32_t i = 0; i < count; ++i) {
      if (!lock_child(i, parent_->children[children[first_ + i]])) return false;
    }
    return true;
  }

  /// Locks a child and all its records, and sorts the records that are kept.
  bool lock_child(uint32_t i, const DualPointer& child) {
    const VolatilePointer word = child.load_acquire();
    if (word.is_null() || word.is_frozen()) return false;
    BorderPage* page = border_page(tree_page(worker_.view().resolve(word)));
    if (!page->is_border() || !page_locks_[i].try_lock_page(worker_, page, kFirstChildBlock + i)) {
      return false;
    }
    pages_[i] = page;
    const PageVersion version = page->header.version();
    DCHECK(page->header.is_delta != 0 && version.count() <= page->slot_capacity);
    DCHECK(i == 0 || pages_[i - 1]->high == page->low);
    if (version.is_moved() || record_count_ + version.count() > kMaxFoldedRecords) return false;
    max_removed_vid_ = std::max(max_removed_vid_, max_removed_vid_of(*page));
    const uint32_t first_kept = kept_count_;
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      TreeRecord* record = page->record(slot);
      if (!worker_.locker().try_lock(record->head.lock, record_block(record_count_),
                                     worker_.name_of(record))) {
        return false;
      }
      records_[record_count_++] = record;
      const Vid vid = record->head.load_acquire();
      if (vid.is_next_layer() || vid.is_being_written()) return false;
      if (is_covered(vid, epoch_, worker_.view().control->epochs)) {
        if (vid.ordinal() != 0) max_removed_vid_ = std::max(max_removed_vid_, vid.version());
        removed_bytes_ += copied_bytes(record, 0) + kSlotBytes;
        continue;
      }
      kept_[kept_count_++] = {page->slices()[slot], record};
      kept_bytes_ += copied_bytes(record, 0) + kSlotBytes;
    }
    if (version.is_ascending()) return true;
    std::sort(kept_.begin() + first_kept, kept_.begin() + kept_count_,
              [](const Kept& a, const Kept& b) {
                if (a.slice != b.slice) return a.slice < b.slice;
                return length_class(a.record->remainder) < length_class(b.record->remainder);
              });
    return true;
  }

  void publish() {
    CHECK(kept_count_ <= record_count_ && page_count_ > 1);
    const TreePage* last = pages_[page_count_ - 1];
    const SliceRange range{pages_[0]->low, last->high, last->high_is_end != 0};
    const uint32_t typical =
        kept_count_ == 0 ? TreeRecord::bytes_for(8, 8) : kept_bytes_ / kept_count_ - kSlotBytes;
    const uint32_t capacity = std::max(BorderPage::capacity_for(typical), kept_count_);
    BorderPage* folded = new_border(worker_, tree_of(*pages_[0]), pages_[0]->header.layer, range,
                                    capacity, max_removed_vid_);
    for (uint32_t i = 0; i < kept_count_; ++i) {
      DCHECK(i == 0 || kept_[i - 1].slice <= kept_[i].slice);
      copy_record(folded, i, kept_[i].slice, kept_[i].record, 0);
    }
    folded->header.set_version(PageVersion::make(0, kept_count_, PageVersion::kAscending));
    RunReplacement replacement(worker_, link_, parent_, first_, first_ + page_count_, folded,
                               max_removed_vid_);
    // R7: first all VIDs, then the page words, then the twins.
    for (uint32_t i = 0; i < record_count_; ++i) {
      std::atomic<uint64_t>& vid = records_[i]->head.vid;
      vid.store(vid.load(std::memory_order_relaxed) | Vid::kMoved, std::memory_order_release);
    }
    replacement.publish(std::span(pages_).first(page_count_),
                        [folded](const TreePage*) { return folded; });
    worker_.metrics().merges.add();
  }

  struct Kept {
    uint64_t slice;
    TreeRecord* record;
  };

  WorkerContext& worker_;
  StorageControl& storage_;
  const Link& link_;
  InteriorPage* parent_;
  const uint64_t epoch_;
  uint32_t first_ = 0;
  uint32_t page_count_ = 0;
  uint32_t record_count_ = 0;
  uint32_t kept_count_ = 0;
  uint32_t kept_bytes_ = 0;
  uint32_t removed_bytes_ = 0;
  uint64_t max_removed_vid_ = 0;
  std::array<TreePage*, kMaxFoldedPages> pages_;
  std::array<TreeRecord*, kMaxFoldedRecords> records_;
  std::array<Kept, kMaxFoldedRecords> kept_;
  ScopedLock holder_lock_;
  ScopedLock parent_lock_;
  std::array<ScopedLock, kMaxFoldedPages> page_locks_;
};

}  // namespace

FoldContent fold_content_of(WorkerContext& worker, BorderPage* page, PageVersion version,
                            uint64_t epoch) {
  DCHECK(page->header.is_delta != 0 && version.count() <= page->slot_capacity);
  const EpochBlock& epochs = worker.view().control->epochs;
  FoldContent content;
  content.records = version.count();
  for (uint32_t slot = 0; slot < version.count(); ++slot) {
    TreeRecord* record = page->record(slot);
    const Vid vid = record->head.load_acquire();
    if (vid.is_next_layer()) {
      content.has_layers = true;
      const BorderPage* below = only_page_below(worker, record);
      const bool is_empty = below != nullptr && below->header.version().count() == 0;
      content.has_empty_layer = content.has_empty_layer || is_empty;
    } else if (is_covered(vid, epoch, epochs)) {
      ++content.covered;
      content.covered_bytes += copied_bytes(record, 0) + kSlotBytes;
      continue;
    }
    content.bytes += copied_bytes(record, 0) + kSlotBytes;
  }
  return content;
}

bool fits_folded(uint32_t records, uint32_t bytes) {
  return bytes <= kBorderUsableBytes * 6 / 10 && records * 10 <= kMaxBorderSlots * 6;
}

bool fold_pages(WorkerContext& worker, StorageControl& storage, const Link& link,
                InteriorPage* parent, uint64_t slice, uint32_t count, uint64_t epoch,
                FoldContent& removed) {
  CHECK(count > 1 && count <= kMaxFoldedPages && parent->header.level == 1);
  return Fold(worker, storage, link, parent, epoch).run(slice, count, removed);
}

}  // namespace atolldb
