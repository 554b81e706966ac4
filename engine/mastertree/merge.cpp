// Merges runs of empty pages (R46), one level after another, and shortens the root.
#include <algorithm>
#include <array>
#include <span>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/interior_copy.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/replace_run.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/tree_path.h"

namespace atolldb {

namespace {

constexpr uint32_t kMaxMergePages = 96;
constexpr uint32_t kMaxLevels = TreePath::kMaxLevels;

/// Merges one run of empty children of an interior page.
class Merge {
 public:
  Merge(WorkerContext& worker, StorageControl& storage, const Link& link, InteriorPage* parent,
        uint32_t min_run)
      : worker_(worker), storage_(storage), link_(link), parent_(parent), min_run_(min_run) {
    DCHECK(min_run_ > 1);
  }

  bool run(uint64_t slice) {
    DCHECK(!parent_->is_border() && parent_->header.level < kMaxLevels);
    // R23: pages are reserved before locks are taken. The merge needs one new page for each level
    // below the parent, and one for the parent's successor.
    if (!worker_.reserve_pages(parent_->header.level + 1u)) return false;
    if (!holder_lock_.try_lock_holder(worker_, storage_, link_)) return false;
    if (!parent_lock_.try_lock_page(worker_, parent_)) return false;
    if (parent_->header.version().is_moved() || !link_leads_to(link_, parent_)) return false;
    DCHECK(holds_page(worker_, parent_));
    sort_children();
    if (!find_run(slice)) return false;
    reach(SyncPoint::found_run);
    if (!lock_run()) return false;
    publish();
    worker_.metrics().merges.add();
    return true;
  }

 private:
  void sort_children() {
    count_ = parent_->header.version().count();
    for (uint32_t i = 0; i < count_; ++i) order_[i] = i;
    insertion_sort(order_.data(), count_, [&](uint32_t a, uint32_t b) {
      return parent_->separators[a] < parent_->separators[b];
    });
  }

  bool empty_child(uint32_t position) {
    const VolatilePointer word = parent_->children[order_[position]].load_acquire();
    if (word.is_null()) return false;
    TreePage* chain[kMaxLevels];
    uint32_t size = 0;
    return leads_to_empty(worker_, tree_page(worker_.view().resolve(word)), chain, size,
                          kMaxLevels);
  }

  /// Finds the run [first_, last_) of empty children around the child that holds `slice`. Returns
  /// true if the run is long enough to justify a new parent, or if it has all children of the
  /// parent. In the second case the parent gets a single child, and can then be merged with its own
  /// neighbours. Without this case the head of a queue would leave many parents with few children.
  bool find_run(uint64_t slice) {
    uint32_t at = 0;
    while (at + 1 < count_ && parent_->separators[order_[at + 1]] <= slice) ++at;
    if (!empty_child(at)) return false;
    const uint32_t limit = kMaxMergePages / parent_->header.level;
    first_ = at;
    last_ = at + 1;
    while (first_ > 0 && last_ - first_ < limit && empty_child(first_ - 1)) --first_;
    while (last_ < count_ && last_ - first_ < limit && empty_child(last_)) ++last_;
    DCHECK(first_ < last_ && last_ <= count_);
    const uint32_t run = last_ - first_;
    return run >= min_run_ || (run == count_ && run > 1);
  }

  /// Locks every page of the run, and checks under the locks that the run is unchanged.
  bool lock_run() {
    for (uint32_t i = first_; i < last_; ++i) {
      TreePage* child =
          tree_page(worker_.view().resolve(parent_->children[order_[i]].load_acquire()));
      TreePage* chain[kMaxLevels];
      uint32_t size = 0;
      const bool empty = leads_to_empty(worker_, child, chain, size, kMaxLevels);
      if (!empty && !fault::merge_unchecked) return false;
      for (uint32_t k = 0; k < size; ++k) {
        if (page_count_ == kMaxMergePages) return false;
        if (!locks_[page_count_].try_lock_page(worker_, chain[k])) {
          return false;
        }
        pages_[page_count_++] = chain[k];
      }
      if (fault::merge_unchecked) continue;
      // Under the locks the chain must be the same as before, page by page.
      TreePage* again[kMaxLevels];
      uint32_t size_again = 0;
      if (!leads_to_empty(worker_, child, again, size_again, kMaxLevels) || size_again != size ||
          !std::equal(chain, chain + size, again)) {
        return false;
      }
    }
    return true;
  }

  void publish() {
    const TreePage* low_page =
        tree_page(worker_.view().resolve(parent_->children[order_[first_]].load_acquire()));
    const TreePage* high_page =
        tree_page(worker_.view().resolve(parent_->children[order_[last_ - 1]].load_acquire()));
    const SliceRange range{low_page->low, high_page->high, high_page->high_is_end()};
    DCHECK(range.high_is_end || range.low < range.high);
    uint64_t max_removed_vid = 0;
    for (uint32_t i = 0; i < page_count_; ++i) {
      DCHECK(holds_page(worker_, pages_[i]));
      DCHECK(pages_[i]->header.version().count() == (pages_[i]->is_border() ? 0 : 1));
      max_removed_vid = std::max(max_removed_vid, max_removed_vid_of(*pages_[i]));
    }
    // merged_[level] replaces the run's pages of that level.
    build_merged(range, max_removed_vid);
    RunReplacement replacement(worker_, link_, parent_, first_, last_,
                               std::span(merged_).subspan(parent_->header.level - 1u, 1),
                               max_removed_vid);
    if (fault::merge_parent_first) replacement.publish_parent();
    reach(SyncPoint::publishing_merge);
    replacement.publish(std::span(pages_).first(page_count_),
                        [this](const TreePage* page) { return merged_[page->header.level]; });
  }

  void build_merged(const SliceRange& range, uint64_t max_removed_vid) {
    const PageHeader& header = parent_->header;
    merged_[0] =
        new_border(worker_, tree_of(*parent_), header.layer, range,
                   BorderPage::capacity_for(TreeRecord::bytes_with(8, 8)), max_removed_vid);
    for (uint8_t level = 1; level < header.level; ++level) {
      InteriorPage* page =
          new_interior(worker_, tree_of(*parent_), header.layer, level, range, max_removed_vid);
      page->separators[0] = range.low;
      page->children[0].volatile_word.store(merged_[level - 1]->self().word(),
                                            std::memory_order_relaxed);
      page->set_sorted(1);
      page->header.set_version(PageVersion::make(0, 1, PageVersion::kAscending));
      merged_[level] = page;
    }
  }

  WorkerContext& worker_;
  StorageControl& storage_;
  const Link& link_;
  InteriorPage* parent_;
  const uint32_t min_run_;
  uint32_t count_ = 0;
  uint32_t first_ = 0;
  uint32_t last_ = 0;
  uint32_t page_count_ = 0;
  std::array<uint32_t, kInteriorCapacity> order_;
  std::array<TreePage*, kMaxMergePages> pages_;
  std::array<TreePage*, kMaxLevels> merged_;
  // Declared last, so they are destroyed first, in this order: run, parent, holder of the parent.
  ScopedLock holder_lock_;
  ScopedLock parent_lock_;
  std::array<ScopedLock, kMaxMergePages> locks_;
};

/// Replaces a root that has one child by that child.
bool shorten_root(WorkerContext& worker, StorageControl& storage, const Link& link,
                  InteriorPage* root) {
  ScopedLock holder;
  ScopedLock lock;
  if (!holder.try_lock_holder(worker, storage, link)) return false;
  if (!lock.try_lock_page(worker, root)) return false;
  const PageVersion version = root->header.version();
  if (version.is_moved() || version.count() != 1 || !link_leads_to(link, root)) return false;
  const VolatilePointer word = root->children[0].load_acquire();
  if (word.is_null()) return false;
  TreePage* child = tree_page(worker.view().resolve(word));
  if (!child->same_range(*root)) return false;
  // R43: the child inherits the root's newest removed version. The child must be locked, because a
  // thread that replaces the child copies that version to the successor.
  ScopedLock child_lock;
  if (!child_lock.try_lock_page(worker, child)) return false;
  if (child->header.version().is_moved()) return false;
  DCHECK(child->header.level + 1 == root->header.level);
  child->header.max_removed_vid.store(
      std::max(max_removed_vid_of(*root), max_removed_vid_of(*child)), std::memory_order_relaxed);
  freeze(root->children[0]);
  root->header.set_version(version.with_status(PageVersion::kMoved));
  root->set_twins(word, word, root->low);
  link.pointer->volatile_word.store(word.word(), std::memory_order_release);
  worker.pages().retire(&root->header);
  return true;
}

}  // namespace

bool leads_to_empty(const WorkerContext& worker, TreePage* page, TreePage** chain, uint32_t& size,
                    uint32_t room) {
  for (size = 0; size < room;) {
    const PageVersion version = page->header.version();
    if (version.is_moved()) return false;
    chain[size++] = page;
    if (page->is_border()) return version.count() == 0;
    if (version.count() != 1) return false;
    const VolatilePointer word = interior_page(page)->children[0].load_acquire();
    if (word.is_frozen() || word.is_null()) return false;
    page = tree_page(worker.view().resolve(word));
  }
  return false;
}

bool merge_around(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                  uint32_t min_run) {
  constexpr uint32_t kMaxRounds = 8;
  bool has_changed = false;
  for (uint32_t round = 0; round < kMaxRounds; ++round) {
    find_border(worker, storage, root, slice, Adoption::whole_way);
    TreePath path;
    if (!find_path(worker, root, slice, path)) continue;
    if (path.border == nullptr) return has_changed;
    bool changed = false;
    for (uint32_t i = path.size; i-- > 0 && !changed;) {
      changed = Merge(worker, storage, path.steps[i].link, path.steps[i].page, min_run).run(slice);
    }
    const TreePath::Step& top = path.steps[0];
    if (!changed && path.size != 0 && top.page->header.version().count() == 1) {
      changed = shorten_root(worker, storage, top.link, top.page);
    }
    if (!changed) return has_changed;
    has_changed = true;
  }
  return has_changed;
}

}  // namespace atolldb
