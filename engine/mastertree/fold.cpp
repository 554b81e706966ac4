#include "engine/mastertree/fold.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/replace_run.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/run_locks.h"
#include "engine/mastertree/tree_path.h"
#include "engine/transaction/covered.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

static_assert(kMaxFoldedPages <= RunLocks::kMaxPages);
static_assert(kMaxFoldedRecords <= RunLocks::kMaxRecords);

/// One fold.
class Fold {
 public:
  Fold(WorkerContext& worker, StorageControl& storage, const Link& link, InteriorPage* parent,
       uint64_t epoch)
      : worker_(worker), link_(link), parent_(parent), epoch_(epoch), locks_(worker, storage) {
    DCHECK(parent->header.is_delta != 0 && parent->header.level == 1 && epoch != 0);
  }

  bool run(uint64_t slice, uint32_t count, FoldContent& removed) {
    // R23: one page for the records, and one for the parent's successor.
    if (!worker_.reserve_pages(2) || !locks_.lock_parent(parent_)) return false;
    if (!lock_children(slice, count)) return false;
    if (!fits_folded(kept_count_, kept_bytes_)) return false;
    // Many parents share the holder. So the copies are made before its lock is taken.
    TreePage* const folded = build();
    if (!locks_.lock_holder(link_, parent_)) {
      worker_.pages().give_back(&folded->header);
      return false;
    }
    reach(SyncPoint::publishing_merge);
    publish(folded);
    removed.covered += locks_.record_count() - kept_count_;
    removed.covered_bytes += removed_bytes_;
    return true;
  }

 private:
  /// Locks `count` children, from the one that holds `slice` on.
  bool lock_children(uint64_t slice, uint32_t count) {
    const ChildRanges children(*parent_, parent_->header.version().count());
    first_ = children.position_of(slice);
    if (first_ + count > children.size()) return false;
    for (uint32_t i = 0; i < count; ++i) {
      if (!lock_child(parent_->children[children[first_ + i]])) return false;
    }
    return true;
  }

  /// Locks a child and all its records, and sorts the records that are kept.
  bool lock_child(const DualPointer& child) {
    BorderPage* page = locks_.lock_child(child);
    if (page == nullptr) return false;
    const PageVersion version = page->header.version();
    DCHECK(page->header.is_delta != 0);
    if (locks_.record_count() + version.count() > kMaxFoldedRecords) return false;
    const uint32_t first_kept = kept_count_;
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      TreeRecord* record = page->record(slot);
      if (!locks_.lock_record(record)) return false;
      const Vid vid = record->head.load_acquire();
      if (vid.is_next_layer() || vid.is_being_written()) return false;
      if (is_covered(vid, epoch_, worker_.view().control->epochs)) {
        if (vid.ordinal() != 0) locks_.add_removed(vid);
        removed_bytes_ += copied_bytes(record, 0) + kSlotBytes;
        continue;
      }
      kept_[kept_count_++] = {page->slices()[slot], record};
      kept_bytes_ += copied_bytes(record, 0) + kSlotBytes;
    }
    if (!version.is_ascending()) {
      std::sort(kept_.begin() + first_kept, kept_.begin() + kept_count_, precedes);
    }
    return true;
  }

  /// Builds the new page. No other thread can reach it before it is published, and the locked
  /// records do not change.
  TreePage* build() {
    const std::span<TreePage* const> pages = locks_.pages();
    CHECK(kept_count_ <= locks_.record_count() && pages.size() > 1);
    const TreePage* last = pages.back();
    const SliceRange range{pages[0]->low, last->high, last->high_is_end()};
    return new_border_with(worker_, {tree_of(*pages[0]), pages[0]->header.layer, range},
                           std::span(kept_).first(kept_count_), locks_.max_removed_vid());
  }

  void publish(TreePage* const folded) {
    const std::span<TreePage* const> pages = locks_.pages();
    RunReplacement replacement(worker_, link_, parent_, first_,
                               first_ + static_cast<uint32_t>(pages.size()), {&folded, 1},
                               locks_.max_removed_vid());
    // R7: first all VIDs, then the page words, then the twins.
    locks_.mark_records_moved();
    replacement.publish(pages, [folded](const TreePage*) { return folded; });
    worker_.metrics().merges.add();
  }

  WorkerContext& worker_;
  const Link& link_;
  InteriorPage* parent_;
  const uint64_t epoch_;
  uint32_t first_ = 0;
  uint32_t kept_count_ = 0;
  uint32_t kept_bytes_ = 0;
  uint32_t removed_bytes_ = 0;
  std::array<SlotSource, kMaxFoldedRecords> kept_;
  RunLocks locks_;
};

}  // namespace

FoldContent fold_content_of(WorkerContext& worker, BorderPage* page, PageVersion version,
                            uint64_t epoch) {
  DCHECK(page->header.is_delta != 0 && version.count() <= page->slot_capacity());
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
