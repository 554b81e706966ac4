#include "engine/mastertree/tree_path.h"

#include "engine/mastertree/interior_copy.h"
#include "engine/transaction/dual_pointer.h"
#include "shared/base/check.h"

namespace atolldb {

ChildRanges::ChildRanges(const InteriorPage& page, uint32_t count) : page_(page), size_(count) {
  DCHECK(count <= kInteriorCapacity);
  for (uint32_t i = 0; i < count; ++i) order_[i] = i;
  insertion_sort(order_.data(), count,
                 [&](uint32_t a, uint32_t b) { return page.separators[a] < page.separators[b]; });
}

SliceRange ChildRanges::range(uint32_t position) const {
  DCHECK(position < size_);
  const uint64_t low = page_.separators[order_[position]];
  if (position + 1 == size_) return {low, page_.high, page_.high_is_end()};
  return {low, page_.separators[order_[position + 1]], false};
}

namespace {

/// Returns the range of the child in `slot`. `count`: the number of children.
SliceRange range_around(const InteriorPage& page, uint32_t count, uint32_t slot) {
  SliceRange range{page.separators[slot], page.high, page.high_is_end()};
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t separator = page.separators[i];
    if (separator <= range.low || (!range.high_is_end && separator >= range.high)) continue;
    range.high = separator;
    range.high_is_end = false;
  }
  return range;
}

}  // namespace

bool find_path(WorkerContext& worker, const Link& root, uint64_t slice, TreePath& path) {
  path.size = 0;
  path.border = nullptr;
  path.link = root;
  path.range = SliceRange{};
  PageVersion holder_version;
  uint32_t slot = 0;  // slot of path.link in its holder
  const auto end_at_link = [&](bool is_known) {
    if (path.size == 0) return is_known;
    const InteriorPage& holder = *path.steps[path.size - 1].page;
    path.range = range_around(holder, holder_version.count(), slot);
    // If the version is unchanged, no child was inserted in between, and the page is still in
    // place.
    return is_known && holder.header.version() == holder_version;
  };
  for (;;) {
    const DualPointer::View view = load_both(*path.link.pointer);
    if (view.page.is_frozen()) return end_at_link(false);
    if (view.page.is_null()) return end_at_link(true);
    TreePage* page = tree_page(worker.view().resolve(view.page));
    const PageVersion version = page->header.version();
    DCHECK(is_sound(page, version));
    if (version.is_moved() || !page->contains(slice)) return end_at_link(false);
    if (page->is_border()) {
      path.range = range_of(*page);
      path.border = border_page(page);
      return true;
    }
    if (path.size == TreePath::kMaxLevels) return end_at_link(false);
    InteriorPage* interior = interior_page(page);
    path.steps[path.size++] = {path.link, interior};
    slot = interior->find(slice, version.count());
    DCHECK(slot < version.count());
    path.link = {&interior->children[slot], interior};
    holder_version = version;
  }
}

bool reach_path(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                TreePath& path) {
  constexpr uint32_t kAttempts = 16;
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    if (find_path(worker, root, slice, path)) return true;
    if (find_border(worker, storage, root, slice, Adoption::whole_way).dropped) return false;
  }
  return false;
}

bool find_layer_below(WorkerContext& worker, StorageControl& storage,
                      std::span<const std::byte> prefix, Link& link) {
  DCHECK(prefix.size() % 8 == 0);
  for (; !prefix.empty(); prefix = prefix.subspan(8)) {
    const uint64_t slice = slice_of(prefix);
    const BorderView view = find_border(worker, storage, link, slice);
    if (view.page == nullptr) return false;
    bool found = false;
    for (uint32_t slot = 0; slot < view.version.count() && !found; ++slot) {
      TreeRecord* record = view.page->record(slot);
      if (view.page->slices()[slot] != slice || !record->head.load_acquire().is_next_layer())
        continue;
      link = {record->next_layer(), view.page};
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace atolldb
