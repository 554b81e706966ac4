#include "engine/mastertree/inspect.h"

#include <algorithm>
#include <vector>

#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/descent.h"
#include "engine/transaction/dual_pointer.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

class Inspector {
 public:
  Inspector(const ClusterView& view, TreeStatistics& statistics)
      : view_(view), statistics_(statistics) {}

  std::string layer(const DualPointer& root) {
    ++statistics_.layers;
    const VolatilePointer page = root.load_acquire();
    if (page.is_null()) return cold(root) ? std::string() : "a layer without a root";
    return this->page(page, SliceRange{}, -1);
  }

 private:
  static std::string wrong(const TreePage* page, const std::string& what) {
    return what + " at page " + std::to_string(page->self().index()) + " of node " +
           std::to_string(page->self().node());
  }

  /// Counts a cold subtree. Returns false if the pointer is invalid: its null word has no snapshot
  /// page beside it, or is frozen (R44).
  bool cold(const DualPointer& pointer) {
    ++statistics_.cold_subtrees;
    return pointer.snapshot_word.load(std::memory_order_relaxed) != 0 &&
           !pointer.load_acquire().is_frozen();
  }

  /// Checks the subtree of `pointer`. The root of the subtree must cover at least `range`. `level`:
  /// its expected level, or -1 for any. Returns the first violation, or an empty string.
  std::string page(VolatilePointer pointer, const SliceRange& range, int level) {
    TreePage* tree = tree_page(view_.resolve(pointer.thawed()));
    const PageVersion version = tree->header.version();
    if (level >= 0 && tree->header.level != level) return wrong(tree, "wrong level");
    if (!tree->lock.is_unused()) return wrong(tree, "page lock in use");
    if (tree->low > range.low || (range.high_is_end && !tree->high_is_end())) {
      return wrong(tree, "range does not cover its slot");
    }
    if (version.is_moved()) return twins(tree, range);
    return tree->is_border() ? border(border_page(tree), version)
                             : interior(interior_page(tree), version, range);
  }

  std::string twins(TreePage* tree, const SliceRange& range) {
    ++statistics_.moved_pages;
    const VolatilePointer left(tree->twins[0].load(std::memory_order_acquire));
    const VolatilePointer right(tree->twins[1].load(std::memory_order_acquire));
    if (left.is_null() || right.is_null()) return wrong(tree, "moved page without twins");
    if (left == right) return page(left, range, tree->header.level);
    const std::string problem =
        page(left, {tree->low, tree->twin_fence, false}, tree->header.level);
    if (!problem.empty()) return problem;
    return page(right, {tree->twin_fence, tree->high, tree->high_is_end()}, tree->header.level);
  }

  std::string interior(InteriorPage* tree, PageVersion version, const SliceRange& range) {
    ++statistics_.interior_pages;
    struct Child {
      uint64_t separator;
      VolatilePointer pointer;
    };
    std::vector<Child> children;
    for (uint32_t i = 0; i < version.count(); ++i) {
      const VolatilePointer pointer = tree->children[i].load_acquire();
      if (pointer.is_frozen()) return wrong(tree, "frozen child");
      if (pointer.is_null() && !cold(tree->children[i])) return wrong(tree, "null child");
      children.push_back({tree->separators[i], pointer});
    }
    std::sort(children.begin(), children.end(),
              [](const Child& a, const Child& b) { return a.separator < b.separator; });
    if (children.empty() || children[0].separator > std::max(range.low, tree->low)) {
      return wrong(tree, "first separator is not the low fence");
    }
    for (size_t i = 0; i < children.size(); ++i) {
      if (children[i].pointer.is_null()) continue;
      const bool last = i + 1 == children.size();
      const SliceRange expected{children[i].separator,
                                last ? tree->high : children[i + 1].separator,
                                last && tree->high_is_end()};
      const std::string problem = page(children[i].pointer, expected, tree->header.level - 1);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  std::string border(BorderPage* tree, PageVersion version) {
    ++statistics_.border_pages;
    std::vector<std::pair<uint64_t, uint32_t>> seen;
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      const uint64_t slice = tree->slices()[slot];
      TreeRecord* record = tree->record(slot);
      const Vid vid = record->head.load_acquire();
      if (!tree->contains(slice)) return wrong(tree, "slot outside the page's range");
      if (record->head.slot != slot) return wrong(tree, "record does not know its slot");
      if (!record->head.lock.is_unused()) return wrong(tree, "record lock in use");
      if (vid.is_moved() || vid.is_being_written()) return wrong(tree, "record in motion");
      seen.emplace_back(slice, length_class(record->head.remainder));
      if (vid.is_next_layer()) {
        const std::string problem = layer(*record->next_layer());
        if (!problem.empty()) return problem;
      } else {
        ++(vid.is_deleted() ? statistics_.tombstones : statistics_.records);
      }
    }
    if (!tree->has_guide(version.count())) return wrong(tree, "guide differs from the slices");
    if (version.is_ascending() && !std::is_sorted(seen.begin(), seen.end())) {
      return wrong(tree, "slots do not ascend");
    }
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
      return wrong(tree, "two records of one key");
    }
    if (seen.size() > kMaxBorderSlots && seen.front().first != seen.back().first) {
      return wrong(tree, "more slots than a page may have");
    }
    return {};
  }

  const ClusterView& view_;
  TreeStatistics& statistics_;
};

void release_page(WorkerContext& worker, VolatilePointer pointer) {
  if (pointer.is_null()) return;
  TreePage* page = tree_page(worker.view().resolve(pointer.thawed()));
  const PageVersion version = page->header.version();
  CHECK(is_sound(page, version));
  if (version.is_moved()) {
    const VolatilePointer left(page->twins[0].load(std::memory_order_acquire));
    const VolatilePointer right(page->twins[1].load(std::memory_order_acquire));
    release_page(worker, left);
    if (right != left) release_page(worker, right);
  } else if (page->is_border()) {
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      TreeRecord* record = border_page(page)->record(slot);
      if (record->head.load_acquire().is_next_layer()) {
        release_page(worker, record->next_layer()->load_acquire());
      }
    }
  } else {
    for (uint32_t i = 0; i < version.count(); ++i) {
      release_page(worker, interior_page(page)->children[i].load_acquire());
    }
  }
  worker.pages().retire(&page->header);
}

}  // namespace

std::string check_tree(const ClusterView& view, StorageControl& storage,
                       TreeStatistics& statistics) {
  statistics = {};
  const DualPointer::View root = load_both(storage.root);
  if (root.page.is_null() && root.snapshot.is_null()) return {};
  const std::string problem = Inspector(view, statistics).layer(storage.root);
  if (!problem.empty() || storage.delta_root.load_acquire().is_null()) return problem;
  TreeStatistics delta;
  const std::string in_delta = Inspector(view, delta).layer(storage.delta_root);
  statistics.delta_pages = delta.pages();
  statistics.delta_records = delta.records + delta.tombstones;
  if (in_delta.empty() && delta.cold_subtrees != 0) return "a cold pointer in the delta tree";
  return in_delta.empty() ? in_delta : "in the delta tree: " + in_delta;
}

void release_tree(WorkerContext& worker, StorageControl& storage) {
  CHECK(is_tree(storage.type));
  for (DualPointer* root : {&storage.root, &storage.delta_root}) {
    const VolatilePointer page = root->load_acquire();
    if (page.is_null()) continue;
    root->volatile_word.store(0, std::memory_order_seq_cst);
    release_page(worker, page);
  }
}

}  // namespace atolldb
