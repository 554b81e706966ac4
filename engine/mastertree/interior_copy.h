// Sorted copy of the children of an interior page that is being replaced. Freezes their words (R3).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "engine/format/tree_page.h"
#include "shared/base/check.h"

namespace atolldb {

/// Insertion sort for items that are sorted except for a short tail: children of an interior page,
/// or records of a page that was built in order.
template <typename T, typename Before>
void insertion_sort(T* items, uint32_t count, Before&& before) {
  for (uint32_t i = 1; i < count; ++i) {
    if (!before(items[i], items[i - 1])) continue;
    const T item = items[i];
    uint32_t at = i;
    for (; at > 0 && before(item, items[at - 1]); --at) items[at] = items[at - 1];
    items[at] = item;
  }
}

class InteriorCopy {
 public:
  struct Child {
    uint64_t separator;
    VolatilePointer page;  // not frozen; a null word keeps its drop count
    uint64_t snapshot_word;
    bool appended;
  };

  /// Freezes every word of the page. REQUIRES: the page is locked and not moved.
  explicit InteriorCopy(InteriorPage* page) : size_(page->header.version().count()) {
    DCHECK(page->lock.is_locked() && !page->header.version().is_moved());
    DCHECK(size_ <= kInteriorCapacity);
    for (uint32_t i = 0; i < size_; ++i) {
      children_[i] = {page->separators[i], freeze(page->children[i]),
                      page->children[i].snapshot_word.load(std::memory_order_relaxed),
                      i >= page->sorted_count()};
    }
    insertion_sort(children_.data(), size_,
                   [](const Child& a, const Child& b) { return a.separator < b.separator; });
  }

  uint32_t size() const { return size_; }
  Child& operator[](uint32_t i) {
    DCHECK(i < size_);
    return children_[i];
  }

  bool appended_at_end() const {
    bool tail = false;
    for (uint32_t i = 0; i < size_; ++i) {
      if (tail && !children_[i].appended) return false;
      tail = tail || children_[i].appended;
    }
    return tail;
  }

  /// Writes children [first, last) to `to`, sorted.
  void write(InteriorPage* to, uint32_t first, uint32_t last) const {
    DCHECK(first < last && last <= size_);
    for (uint32_t i = first; i < last; ++i) {
      DCHECK(i == first || children_[i - 1].separator < children_[i].separator);
      to->separators[i - first] = children_[i].separator;
      to->children[i - first].snapshot_word.store(children_[i].snapshot_word,
                                                  std::memory_order_relaxed);
      to->children[i - first].volatile_word.store(children_[i].page.word(),
                                                  std::memory_order_relaxed);
    }
    to->set_sorted(last - first);
    to->header.set_version(PageVersion::make(0, last - first, PageVersion::kAscending));
  }

  /// Replaces children [first, last) by `pages`, in the order of their ranges (R46, R101). The
  /// range of the first page starts at the separator of `first`. REQUIRES: there is room for the
  /// pages.
  void replace(uint32_t first, uint32_t last, std::span<TreePage* const> pages) {
    DCHECK(first < last && last <= size_ && !pages.empty());
    const auto count = static_cast<uint32_t>(pages.size());
    const uint32_t new_size = size_ - (last - first) + count;
    CHECK(new_size <= kInteriorCapacity);
    Child* const rest = children_.data() + last;
    Child* const end = children_.data() + size_;
    if (new_size <= size_) {
      std::copy(rest, end, children_.data() + first + count);
    } else {
      std::copy_backward(rest, end, children_.data() + new_size);
    }
    for (uint32_t i = 0; i < count; ++i) {
      Child& child = children_[first + i];
      if (i != 0) child.separator = pages[i]->low;
      child.page = pages[i]->self();
      child.appended = false;
      if (!fault::keep_snapshot_words) child.snapshot_word = 0;
    }
    size_ = new_size;
  }

 private:
  std::array<Child, kInteriorCapacity> children_;
  uint32_t size_;
};

}  // namespace atolldb
