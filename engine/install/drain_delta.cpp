// Removes the records of the delta tree that a new snapshot contains (R78).
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/install/drop.h"
#include "engine/install/install.h"
#include "engine/mastertree/delta.h"
#include "engine/mastertree/fold.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/tree_path.h"
#include "engine/transaction/covered.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Maximum number of border pages that a drain visits before it publishes a new begin epoch (R9).
constexpr uint32_t kPagesPerTurn = 32;
/// A drain that lacks pages looks for them again after this pause, and for this time in a pass.
constexpr std::chrono::duration<uint64_t, std::milli> kDrainPause{2};
constexpr std::chrono::duration<uint64_t, std::milli> kMaxDrainWait{1000};
/// Minimum length of a run of empty pages that a drain merges.
constexpr uint32_t kMinRun = 2;
/// Maximum number of pointers that a drain examines while it holds the lock of a page.
constexpr uint32_t kPointersPerLock = 64;

class DeltaDrain {
 public:
  DeltaDrain(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
             InstallReport& report)
      : worker_(worker), storage_(storage), id_(storage.id), task_(task), report_(report) {}

  /// Drains the layer whose keys share `prefix`, and all layers below it.
  Status drain_layer(const std::string& prefix) {
    CHECK(prefix.size() % 8 == 0 && task_.epoch != 0);
    uint64_t slice = 0;
    for (bool has_ended = false; !has_ended;) {
      const Status status = begin_turn_with_pages();
      if (status != Status::ok) return status;
      Link root = delta_link(storage_);
      const Bytes shared = std::as_bytes(std::span(prefix));
      if (root.pointer->load_acquire().is_null() ||
          !find_layer_below(worker_, storage_, shared, root)) {
        return Status::ok;
      }
      std::vector<std::string> below;
      for (uint32_t i = 0; i < kPagesPerTurn && !has_ended && below.empty(); ++i) {
        TreePath path;
        const bool is_known = reach_path(worker_, storage_, root, slice, path);
        SliceRange done = path.range;
        if (is_known && path.border != nullptr) {
          below = large_layers(prefix, path.border);
          if (!below.empty()) break;
          drain_path(root, slice, path, done);
        } else {
          ++report_.busy;
        }
        has_ended = done.high_is_end;
        slice = done.high;
      }
      // These walks have turns of their own, so the pages found so far are not valid afterwards.
      for (const std::string& layer : below) {
        const Status drained = drain_layer(layer);
        if (drained != Status::ok) return drained;
        done_layers_.insert(layer);
      }
    }
    return Status::ok;
  }

 private:
  /// Begins a turn. If the pool has too few pages for it, waits until pages that this thread has
  /// retired are free (R9). Continues without them when the waits of the pass reach kMaxDrainWait.
  /// Threads that drain at the same time may each exceed this by their own waits.
  Status begin_turn_with_pages() {
    static_assert(kPagesPerTurn <= PageAllocator::kMaxReserve);
    for (;;) {
      const Status status = begin_turn(worker_, storage_, id_, task_);
      if (status != Status::ok || worker_.reserve_pages(kPagesPerTurn)) return status;
      if (task_.waited_ms + report_.waited_ms >= kMaxDrainWait.count()) return status;
      worker_.leave();
      std::this_thread::sleep_for(kDrainPause);
      report_.waited_ms += kDrainPause.count();
      worker_.pages().recycle();
    }
  }

  /// Returns the layers of more than one page below `page` that were not drained yet.
  std::vector<std::string> large_layers(const std::string& prefix, BorderPage* page) {
    std::vector<std::string> layers;
    const uint32_t count = page->header.version().count();
    for (uint32_t slot = 0; slot < count; ++slot) {
      TreeRecord* record = page->record(slot);
      if (!record->head.load_acquire().is_next_layer()) continue;
      const VolatilePointer word = record->next_layer()->load_acquire();
      if (word.is_null()) continue;
      if (tree_page(worker_.view().resolve(word.thawed()))->is_border()) continue;
      std::byte bytes[8];
      put_slice(page->slices()[slot], bytes);
      std::string layer = prefix;
      layer.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
      if (!done_layers_.contains(layer)) layers.push_back(std::move(layer));
    }
    return layers;
  }

  /// Drains the border pages from the one at the end of `path` on, with the single pages below
  /// them: one page, or several that are folded into one. Sets `range` to the range that is done.
  void drain_path(const Link& root, uint64_t slice, const TreePath& path, SliceRange& range) {
    BorderPage* page = path.border;
    range = path.range;
    // A new page comes from the pool of this node. So each node drains below its own interior
    // pages, or the pool of one node would have to hold the whole tree.
    DCHECK(page->header.is_delta != 0 && page->contains(slice));
    const TreePage* owner = page;
    if (path.size != 0) owner = path.steps[path.size - 1].page;
    if (owner->self().node() != worker_.node()) return;
    const FoldContent content = fold_content_of(worker_, page, page->header.version(), task_.epoch);
    if (content.has_layers) drain_single_layers(page);
    const uint32_t run = content.has_layers ? 1 : run_length(path, content, range);
    bool is_replaced = false;
    if (run > 1) {
      const TreePath::Step& step = path.steps[path.size - 1];
      const HoldTimer timer(report_);
      FoldContent removed;
      is_replaced =
          fold_pages(worker_, storage_, step.link, step.page, slice, run, task_.epoch, removed);
      if (!is_replaced) ++report_.busy;
      count_removed(removed);
    } else {
      is_replaced = drain(page);
    }
    clear_marks(root, range);
    if (!is_replaced && content.records != 0) return;
    const BorderView view = find_border(worker_, storage_, root, slice, Adoption::whole_way);
    if (view.page == nullptr || view.version.count() != 0) return;
    static_cast<void>(merge_around(worker_, storage_, root, slice, kMinRun));
  }

  /// Clears the marks of the pointers of the first layer in `range` for whose ranges the delta tree
  /// has no record any more (R76).
  void clear_marks(const Link& root, const SliceRange& range) {
    if (root.holder != nullptr) return;  // not the first layer
    uint64_t at = range.low;
    while (range.contains(at)) {
      const BorderView view = find_border(worker_, storage_, root, at, Adoption::whole_way);
      if (view.page == nullptr || !clear_some_marks(view.page, at)) return;
    }
  }

  /// Does the same for some pointers from `at` on whose ranges lie in the range of `page`. Its lock
  /// keeps these ranges empty: a worker that adds a record compares the word of the pointer under
  /// that lock (R77). Moves `at` past them. Returns false if there is nothing more to do, or if the
  /// lock is not free.
  bool clear_some_marks(BorderPage* page, uint64_t& at) {
    ScopedLock lock;
    if (!lock.try_lock_page(worker_, page)) return false;
    const PageVersion version = page->header.version();
    if (version.is_moved()) return false;
    std::array<uint64_t, kBorderSlotBound> slices;
    std::copy_n(page->slices(), version.count(), slices.begin());
    const auto end = slices.begin() + version.count();
    std::sort(slices.begin(), end);
    const SliceRange range = range_of(*page);
    for (uint32_t i = 0; i < kPointersPerLock && range.contains(at); ++i) {
      TreePath path;
      if (!find_path(worker_, root_link(storage_), at, path)) return false;
      const SliceRange& found = path.range;
      const bool is_inside =
          found.low >= range.low &&
          (range.high_is_end || (!found.high_is_end && found.high <= range.high));
      const auto next = std::lower_bound(slices.begin(), end, found.low);
      const bool has_records = next != end && found.contains(*next) && !fault::clear_used_marks;
      const VolatilePointer word = path.link.pointer->load_acquire();
      if (is_inside && !has_records && word.has_delta() && !word.is_frozen()) {
        uint64_t expected = word.word();
        path.link.pointer->volatile_word.compare_exchange_strong(
            expected, next_null(storage_, false).word(), std::memory_order_acq_rel,
            std::memory_order_relaxed);
      }
      if (found.high_is_end) return false;
      at = found.high;
    }
    return true;
  }

  /// Returns how many pages can be folded into one, from the border page of `path` on, and extends
  /// `range` by the ranges of the other ones. Folds pages only if records go, or to fill pages.
  uint32_t run_length(const TreePath& path, FoldContent sum, SliceRange& range) {
    if (path.size == 0 || !fits_folded(sum.records - sum.covered, sum.bytes)) return 1;
    const InteriorPage& parent = *path.steps[path.size - 1].page;
    const PageVersion version = parent.header.version();
    if (version.is_moved()) return 1;
    const ChildRanges children(parent, version.count());
    uint32_t at = 0;
    while (at + 1 < children.size() && children.range(at).low < range.low) ++at;
    DCHECK(at < children.size());
    uint32_t run = 1;
    while (run < kMaxFoldedPages && at + run < children.size()) {
      const VolatilePointer word = parent.children[children[at + run]].load_acquire();
      if (word.is_null() || word.is_frozen()) break;
      BorderPage* page = border_page(tree_page(worker_.view().resolve(word)));
      const PageVersion page_version = page->header.version();
      if (page_version.is_moved()) break;
      const FoldContent content = fold_content_of(worker_, page, page_version, task_.epoch);
      sum.records += content.records;
      sum.covered += content.covered;
      sum.bytes += content.bytes;
      if (content.has_layers || sum.records > kMaxFoldedRecords ||
          !fits_folded(sum.records - sum.covered, sum.bytes)) {
        break;
      }
      range.high = page->high;
      range.high_is_end = page->high_is_end();
      ++run;
    }
    return run;
  }

  void drain_single_layers(BorderPage* page) {
    const PageVersion version = page->header.version();
    if (version.is_moved()) return;
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      TreeRecord* record = page->record(slot);
      if (!record->head.load_acquire().is_next_layer()) continue;
      BorderPage* below = only_page_below(worker_, record);
      if (below == nullptr) continue;
      drain_single_layers(below);
      if (!drain(below)) continue;
      const Link link{record->next_layer(), page};
      static_cast<void>(find_border(worker_, storage_, link, 0, Adoption::whole_way));
    }
  }

  void count_removed(const FoldContent& removed) {
    report_.drained += removed.covered;
    report_.changed_bytes += removed.covered_bytes;
  }

  /// Replaces the page by one without the records that the snapshot has, if they are at least half
  /// of its records. Returns whether it was replaced.
  bool drain(BorderPage* page) {
    const PageVersion version = page->header.version();
    if (version.is_moved()) return false;
    const FoldContent content = fold_content_of(worker_, page, version, task_.epoch);
    const bool is_worth = content.covered != 0 && content.covered * 2 >= content.records;
    if (!is_worth && !content.has_empty_layer) return false;
    if (!worker_.reserve_pages(kPagesPerRestructure + kPagesPerAdoption)) {
      ++report_.busy;
      return false;
    }
    const HoldTimer timer(report_);
    ScopedLock lock;
    RestructureRequest request;
    request.compaction_only = true;
    request.drained_epoch = task_.epoch;
    const bool is_replaced = lock.try_lock_page(worker_, page) &&
                             !page->header.version().is_moved() &&
                             restructure(worker_, nullptr, page, request, lock) == Status::ok;
    if (is_replaced) {
      count_removed(content);
    } else {
      ++report_.busy;
    }
    return is_replaced;
  }

  WorkerContext& worker_;
  StorageControl& storage_;
  const uint32_t id_;
  const InstallTask& task_;
  InstallReport& report_;
  std::set<std::string> done_layers_;
};

}  // namespace

bool is_complete(const InstallReport& parts) {
  return (!parts.is_damaged && parts.oldest_left == InstallReport::kNoSnapshot) ||
         fault::drain_damaged;
}

Status drain_delta(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                   InstallReport& report) {
  if (!is_tree(storage.type) || task.root.is_null()) return Status::ok;
  if (storage.delta_root.load_acquire().is_null()) return Status::ok;
  reach(SyncPoint::draining_delta);
  WorkerMetrics& metrics = worker.metrics();
  const FreedPages freed(worker);
  const uint64_t drained_before = report.drained;
  const Status status = DeltaDrain(worker, storage, task, report).drain_layer({});
  metrics.delta_drained.add(report.drained - drained_before);
  worker.leave();
  report.reclaimed += freed.count(0);
  return status == Status::storage_not_found ? Status::ok : status;
}

}  // namespace atolldb
