#include "engine/mastertree/descent.h"

#include "engine/hooks/mutants.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/interior_copy.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Returns the newest removed version of a page that holds pointers. The page's successor inherits
/// it (R43). It includes the versions of pages that were dropped below the page.
uint64_t max_removed_above(const TreePage& page) {
  return fault::interior_max_removed_vid_zero ? 0 : max_removed_vid_of(page);
}

/// Makes the link lead to `to` instead of `from`, and retires `from`. Clears the snapshot word if
/// the range changes, because the snapshot page stands for the slot's old range only (R44).
void swing(WorkerContext& worker, const Link& link, TreePage* from, VolatilePointer to,
           bool same_range) {
  DCHECK(from->header.version().is_moved() && !to.is_null() && !to.is_frozen());
  if (!same_range && !fault::keep_snapshot_words) {
    link.pointer->snapshot_word.store(0, std::memory_order_relaxed);
  }
  // Release pairs with DualPointer::load_acquire: the page is complete.
  link.pointer->volatile_word.store(to.word(), std::memory_order_release);
  worker.pages().retire(&from->header);
}

void adopt_in_interior(WorkerContext& worker, const Link& link, TreePage* page,
                       VolatilePointer left, VolatilePointer right) {
  InteriorPage* parent = interior_page(link.holder);
  const PageVersion version = parent->header.version();
  const uint32_t count = version.count();
  if (count == kInteriorCapacity || count - parent->sorted_count() >= kInteriorTail) {
    rebuild_interior(worker, parent);
    return;
  }
  DCHECK(holds_page(worker, parent) && !version.is_moved());
  DCHECK(page->header.level + 1 == parent->header.level);
  DCHECK(page->contains(page->twin_fence) && parent->contains(page->twin_fence));
  // First stores the new child, then the word of the old child. In between, the old word leads to
  // the moved page, whose twins lead to both children. The new separator is appended at the end
  // (R3).
  parent->separators[count] = page->twin_fence;
  parent->children[count].snapshot_word.store(0, std::memory_order_relaxed);
  parent->children[count].volatile_word.store(right.word(), std::memory_order_relaxed);
  parent->header.set_version(version.with_insert(false));
  swing(worker, link, page, left, false);
  after_adoption(parent, count);
}

void grow_root(WorkerContext& worker, const Link& link, TreePage* page, VolatilePointer left,
               VolatilePointer right) {
  DCHECK(page->low < page->twin_fence && page->header.level < TreePath::kMaxLevels);
  InteriorPage* root = new_interior(worker, tree_of(*page), page->header.layer,
                                    static_cast<uint8_t>(page->header.level + 1), range_of(*page),
                                    max_removed_above(*page));
  root->separators[0] = page->low;
  root->children[0].volatile_word.store(left.word(), std::memory_order_relaxed);
  root->separators[1] = page->twin_fence;
  root->children[1].volatile_word.store(right.word(), std::memory_order_relaxed);
  root->set_sorted(2);
  root->header.set_version(PageVersion::make(0, 2, PageVersion::kAscending));
  swing(worker, link, page, root->self(), true);
}

}  // namespace

void adopt(WorkerContext& worker, StorageControl& storage, const Link& link, TreePage* page) {
  const VolatilePointer left(page->twins[0].load(std::memory_order_acquire));
  const VolatilePointer right(page->twins[1].load(std::memory_order_acquire));
  DCHECK(page->header.version().is_moved());
  if (left.is_null() || !worker.reserve_pages(kPagesPerAdoption)) return;
  DCHECK(!right.is_null());
  ScopedLock holder;
  if (!holder.try_lock_holder(worker, storage, link)) return;
  if (!link_leads_to(link, page)) return;
  if (left == right) {
    TreePage* successor = tree_page(worker.view().resolve(left));
    swing(worker, link, page, left, successor->same_range(*page));
  } else if (link.holder != nullptr && !link.holder->is_border()) {
    adopt_in_interior(worker, link, page, left, right);
  } else {
    grow_root(worker, link, page, left, right);
  }
  worker.metrics().adoptions.add();
}

void rebuild_interior(WorkerContext& worker, InteriorPage* page) {
  InteriorCopy copy(page);
  const PageVersion version = page->header.version();
  const uint64_t max_removed_vid = max_removed_above(*page);
  const PageHeader& header = page->header;
  const uint32_t count = copy.size();
  DCHECK(count == version.count() && copy[0].separator <= page->low);
  if (count <= kInteriorCapacity * 3 / 4) {
    InteriorPage* whole = new_interior(worker, tree_of(*page), header.layer, header.level,
                                       range_of(*page), max_removed_vid);
    copy.write(whole, 0, count);
    page->header.set_version(version.with_status(PageVersion::kMoved));
    page->set_twins(whole->self(), whole->self(), page->low);
    return;
  }
  // If inserts ascend, the children that were added last lie at the end. The left page then stays
  // nearly full, because it gets no further children.
  const uint32_t middle = copy.appended_at_end() ? count - count / 8 - 1 : count / 2;
  DCHECK(0 < middle && middle < count);
  const uint64_t fence = copy[middle].separator;
  DCHECK(page->low < fence && page->contains(fence));
  InteriorPage* left = new_interior(worker, tree_of(*page), header.layer, header.level,
                                    {page->low, fence, false}, max_removed_vid);
  copy.write(left, 0, middle);
  InteriorPage* right = new_interior(worker, tree_of(*page), header.layer, header.level,
                                     {fence, page->high, page->high_is_end()}, max_removed_vid);
  copy.write(right, middle, count);
  page->header.set_version(version.with_status(PageVersion::kMoved));
  page->set_twins(left->self(), right->self(), fence);
  worker.metrics().splits.add();
}

}  // namespace atolldb
