// Replaces neighbouring children of an interior page by other pages of the same range, in merges
// (R46), folds (R78) and packs (R101).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/mastertree/build.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/interior_copy.h"
#include "shared/base/check.h"

namespace atolldb {

/// The successor of the parent, and its publication. REQUIRES: the caller holds the locks of the
/// parent, of the page that holds `link`, and of all replaced pages, until it destroys the object;
/// a page is reserved for the successor.
class RunReplacement {
 public:
  /// Builds the successor: children [first, last), in the order of their ranges, become `pages`.
  /// Freezes the words of `parent` (R3). `max_removed_vid`: newest removed version of the replaced
  /// pages (R43).
  RunReplacement(WorkerContext& worker, const Link& link, InteriorPage* parent, uint32_t first,
                 uint32_t last, std::span<TreePage* const> pages, uint64_t max_removed_vid)
      : worker_(worker), link_(link), parent_(parent) {
    InteriorCopy copy(parent);
    copy.replace(first, last, pages);
    CHECK(copy.size() == parent->header.version().count() - (last - first) + pages.size());
    successor_ =
        new_interior(worker, tree_of(*parent), parent->header.layer, parent->header.level,
                     range_of(*parent), std::max(max_removed_vid, max_removed_vid_of(*parent)));
    copy.write(successor_, 0, copy.size());
  }

  /// Publishes the replacement, and retires the parent and `pages`, which are the replaced pages of
  /// all levels. `successor_of(page)` returns the page that replaces a page. REQUIRES: the records
  /// in the pages are marked as moved (R7).
  template <typename SuccessorOf>
  void publish(std::span<TreePage* const> pages, SuccessorOf&& successor_of) {
    for (TreePage* page : pages) {
      if (!page->is_border()) freeze(interior_page(page)->children[0]);
      mark_moved(page);
    }
    for (TreePage* page : pages) {
      const VolatilePointer to = successor_of(page)->self();
      page->set_twins(to, to, page->low);
    }
    publish_parent();
    for (TreePage* page : pages) worker_.pages().retire(&page->header);
    worker_.pages().retire(&parent_->header);
  }

  /// The successor of the parent. A descent may start at it for any slice of the parent's range.
  InteriorPage* successor() const { return successor_; }

  /// A step of `publish`, which mutants call too early.
  void publish_parent() {
    mark_moved(parent_);
    parent_->set_twins(successor_->self(), successor_->self(), parent_->low);
    // The successor has the same range, so the snapshot word is kept (R44).
    link_.pointer->volatile_word.store(successor_->self().word(), std::memory_order_release);
  }

 private:
  static void mark_moved(TreePage* page) {
    DCHECK(page->lock.is_locked());
    page->header.set_version(page->header.version().with_status(PageVersion::kMoved));
  }

  WorkerContext& worker_;
  const Link& link_;
  InteriorPage* parent_;
  InteriorPage* successor_;
};

}  // namespace atolldb
