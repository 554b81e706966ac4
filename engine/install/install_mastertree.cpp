#include "engine/install/install.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/format/stand_in.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/install/drop.h"
#include "engine/install/snapshot_level.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/prefetch.h"
#include "engine/mastertree/reclaim.h"
#include "engine/mastertree/snapshot_tree.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Maximum number of paths that the installer handles before it publishes a new begin epoch (R9).
constexpr uint32_t kPathsPerTurn = 32;

/// Result of one pass over the records of a border page. The pass takes no locks, so the result is
/// a hint.
struct BorderSurvey {
  bool has_layers = false;
  bool has_living = false;  // a record that is no tombstone
  bool has_tombstone = false;
  bool is_covered = false;     // the snapshot has all changes of the page (R8)
  uint32_t changed_bytes = 0;  // see InstallReport

  /// Returns whether `reclaim_path` may find something to reclaim (R70).
  bool may_reclaim() const { return has_layers || has_tombstone || !has_living; }
};

/// State of the walk through one layer.
struct LayerWalk {
  std::string prefix;    // slices of the layers above, 8 bytes each
  SnapshotPointer root;  // root of the layer in the snapshot; null: the snapshot has no such layer
  SliceRange part;       // slices to visit in this layer; in layers below the first one all
  uint64_t slice = 0;    // low end of the range that is still to be visited
  bool has_ended = false;
  /// True: the walk visits only the path to one bound between two parts. It drops the pages that
  /// lie on both sides of the bound. It leaves pages with later bounds to the walks to those
  /// bounds.
  bool is_seam = false;
  std::span<const uint64_t> later_bounds;
  /// Number of times that reclaim_path has replaced pages on the path to `slice` (R70), at most
  /// kMaxReclaims.
  uint32_t reclaims = 0;
  bool has_counted_layers = false;  // the layers of the border page at `slice` are counted
  bool has_progress = false;        // the last step was repeated, but has divided a range (R80)
  /// State of the walk for the pages of one level.
  struct Level {
    uint64_t done_to = 0;    // pointers to pages of this level are done up to this slice
    SnapshotLevel snapshot;  // snapshot pages below the interior page that was visited last
  };
  std::array<Level, TreePath::kMaxLevels> levels;
  // True if a part of the layer cannot be read (R56), or was not visited.
  bool is_damaged = false;

  /// Returns whether this walk decides about the page of a range. Pages in several parts are left
  /// to the walk over the seams.
  bool owns(const SliceRange& range) const {
    if (is_seam) {
      return range.low < slice && range.contains(slice) &&
             (later_bounds.empty() || !range.contains(later_bounds.front()));
    }
    return range.low >= part.low &&
           (part.high_is_end || (!range.high_is_end && range.high <= part.high));
  }
};

/// Installs one part of a Master-tree. Installers of other parts run at the same time. They share
/// the pages above the first layer's parts, and pages with slices of several parts. Installers,
/// like workers, change these pages only under page locks. The words that two installers store are
/// equal, because both install the same snapshot. A pointer is counted by the installer of the part
/// in which its range begins.
class TreeInstaller {
 public:
  TreeInstaller(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                InstallReport& report)
      : worker_(worker), storage_(storage), id_(storage.id), task_(task), report_(report) {}

  Status run() {
    const FreedPages freed(worker_);
    const uint64_t dropped_before = report_.dropped;
    Status status = enter();
    if (status == Status::ok) {
      if (task_.part.low == 0) install_root();
      LayerWalk walk;
      walk.root = task_.root;
      walk.part = task_.part;
      walk.slice = task_.part.low;
      status = walk_layer(walk);
      report_.is_damaged = report_.is_damaged || walk.is_damaged;
    }
    if (status == Status::storage_not_found) status = Status::ok;  // the storage was dropped
    if (has_missed_) report_.oldest_left = 0;
    report_.reclaimed += freed.count(report_.dropped - dropped_before);
    return status;
  }

  Status run_seams(std::span<const uint64_t> bounds, bool is_damaged) {
    Status status = Status::ok;
    for (size_t i = 0; i < bounds.size() && status == Status::ok; ++i) {
      LayerWalk walk;
      walk.root = task_.root;
      walk.slice = bounds[i];
      walk.is_seam = true;
      walk.later_bounds = bounds.subspan(i + 1);
      walk.is_damaged = is_damaged;
      status = walk_layer(walk);
    }
    return status == Status::storage_not_found ? Status::ok : status;
  }

 private:
  enum class Step : uint8_t { done, again };

  Status enter() { return begin_turn(worker_, storage_, id_, task_); }

  void install_root() {
    ScopedLock lock;
    // May wait, because this thread holds no other lock. If the cluster has failed, the next turn
    // notices it.
    if (!lock.lock(worker_, storage_.root_lock, root_lock_name(storage_))) return;
    install(storage_.root, task_.root);
  }

  /// Stores the snapshot page beside a pointer. `page` null: the snapshot has no page of this
  /// range. `is_own`: the pointer is counted here, not by the installer of another part.
  /// REQUIRES: the lock that guards the pointer is held (R44).
  void install(DualPointer& pointer, SnapshotPointer page, bool is_own = true) {
    const uint64_t before = pointer.snapshot_word.load(std::memory_order_relaxed);
    // The word cannot become null from here on. A copy-up may store a page, but only installers
    // drop pages, under this lock. A null word may get a delta mark, once (R76).
    VolatilePointer word = pointer.load_acquire();
    // Frozen words occur only in pages that are locked or moved.
    DCHECK(!word.is_frozen() || fault::install_in_moved_pages);
    if (page.is_null() && word.is_null()) {
      report_left(SnapshotPointer(before), report_);
      return;
    }
    if (is_own) ++(page.is_null() ? report_.unmatched : report_.installed);
    if (before == page.word()) return;
    while (word.is_null()) {
      if (replace_cold(storage_, pointer, word, page)) return;
      word = pointer.load_acquire();
    }
    // Release: the snapshot word is stored before the null word that drops the page (R2).
    pointer.snapshot_word.store(page.word(), std::memory_order_release);
  }

  Status walk_layer(LayerWalk& walk) {
    CHECK(walk.prefix.size() % 8 == 0 && !walk.has_ended);
    for (uint32_t failures = 0; !walk.has_ended;) {
      const Status status = enter();
      if (status != Status::ok) return status;
      Link root;
      if (!find_layer(worker_, storage_, bytes_of(walk.prefix), root)) {
        // The layer was removed with its slot, or it is being replaced.
        record_missed(walk);
        return Status::ok;
      }
      Step step = Step::done;
      const uint64_t epoch = worker_.current_epoch();
      for (uint32_t i = 0; i < kPathsPerTurn && step == Step::done && !walk.has_ended; ++i) {
        // Ends the turn when the epoch changes. Reads from the device may take long, and pages that
        // other workers retire wait for this thread's begin epoch.
        if (i != 0 && worker_.current_epoch() != epoch) break;
        const Status stepped = take_step(walk, root, step);
        if (stepped != Status::ok) return stepped;
      }
      failures = step == Step::again && !walk.has_progress ? failures + 1 : 0;
      walk.has_progress = false;
      if (failures == kMaxFailures) {
        skip_path(walk, root);
        failures = 0;
      }
    }
    return Status::ok;
  }

  /// Skips a path that changes in every attempt, and leaves it to the next snapshot.
  void skip_path(LayerWalk& walk, const Link& root) {
    TreePath path;
    static_cast<void>(find_path(worker_, root, walk.slice, path));
    record_missed(walk);
    move_on(walk, path);
  }

  /// Records that the walk has skipped pages. Pages that the walk over a seam skips count as
  /// visited, because the installers of the parts have visited them.
  void record_missed(LayerWalk& walk) {
    walk.is_damaged = true;
    if (!walk.is_seam) has_missed_ = true;
  }

  static void move_on(LayerWalk& walk, const TreePath& path) {
    const SliceRange& range = path.range;
    walk.has_ended = walk.is_seam || range.high_is_end ||
                     (!walk.part.high_is_end && range.high >= walk.part.high);
    walk.slice = path.range.high;
    walk.reclaims = 0;
    walk.has_counted_layers = false;
  }

  Status take_step(LayerWalk& walk, const Link& root, Step& step) {
    TreePath path;
    const bool is_known = reach_path(worker_, storage_, root, walk.slice, path);
    BorderSurvey survey;
    if (is_known && path.border != nullptr) {
      prefetch_next(path);
      survey = survey_of(path.border);
    }
    if (survey.may_reclaim() && is_known && path.border != nullptr && !walk.is_seam &&
        walk.reclaims < kMaxReclaims &&
        reclaim_path(worker_, storage_, root, walk.slice, path.border)) {
      ++walk.reclaims;
      step = Step::again;  // pages on the path were replaced
      return Status::ok;
    }
    for (uint32_t i = 0; i < path.size; ++i) {
      const Status status = install_children(walk, path.steps[i].page, step);
      if (status != Status::ok || step == Step::again) return status;
    }
    if (is_known && path.border != nullptr) {
      if (!walk.is_seam && !walk.has_counted_layers) report_.changed_bytes += survey.changed_bytes;
      const Status status =
          survey.has_layers && !walk.is_seam ? install_layers(walk, path.border, step) : Status::ok;
      if (status != Status::ok || step == Step::again) return status;
      if (path.size != 0 && survey.is_covered && walk.owns(path.range)) {
        drop(walk, path.link, path.border, survey.has_layers || !survey.has_living);
      }
    }
    if (is_known && path.border == nullptr && !path.link.pointer->load_acquire().is_null()) {
      // A copy-up, perhaps of the older page, has installed a page meanwhile. The next attempt
      // visits that page.
      step = Step::again;
      return Status::ok;
    }
    // Skips a path that is being replaced and cannot be adopted, for example because the pool has
    // no pages.
    if (!is_known) record_missed(walk);
    for (uint32_t i = path.size; i-- > 1;) {
      const InteriorPage& page = *path.steps[i].page;
      const bool is_last = path.range.high_is_end
                               ? page.high_is_end()
                               : !page.high_is_end() && page.high == path.range.high;
      if ((is_last || walk.is_seam) && walk.owns(range_of(page)))
        drop(walk, path.steps[i].link, path.steps[i].page);
    }
    // Removes the layers below this one from the set, because their border page is done. The walk
    // through the layer above removes this layer.
    std::erase_if(done_layers_, [&](const auto& layer) {
      return layer.first.size() > walk.prefix.size() && layer.first.starts_with(walk.prefix);
    });
    DCHECK(path.range.contains(walk.slice));  // so the walk moves on
    move_on(walk, path);
    return Status::ok;
  }

  BorderSurvey survey_of(BorderPage* page) {
    BorderSurvey survey;
    const PageVersion version = page->header.version();
    DCHECK(version.count() <= page->slot_capacity());
    const EpochBlock& epochs = worker_.view().control->epochs;
    survey.is_covered = is_removed_in_snapshot(
        page->header.max_removed_vid.load(std::memory_order_relaxed), task_.epoch);
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      const TreeRecord* record = page->record(slot);
      const Vid vid = record->head.load_acquire();
      if (vid.epoch() > task_.base_epoch && !vid.is_next_layer()) {
        survey.changed_bytes += record->bytes() + kSlotBytes;
      }
      survey.has_layers = survey.has_layers || vid.is_next_layer();
      survey.has_tombstone = survey.has_tombstone || vid.is_deleted();
      survey.has_living = survey.has_living || !vid.is_deleted();
      survey.is_covered =
          survey.is_covered && !vid.is_being_written() && is_in_snapshot(vid, task_.epoch, epochs);
    }
    return survey;
  }

  /// Prefetches the next border pages with the same parent.
  void prefetch_next(const TreePath& path) {
    if (path.size == 0) return;
    const InteriorPage& parent = *path.steps[path.size - 1].page;
    const auto current = static_cast<uint32_t>(path.link.pointer - parent.children);
    prefetch_walk([&](uint32_t distance) -> BorderPage* {
      // Children after the sorted ones are in no order, but they are few.
      if (current + distance >= parent.sorted_count()) return nullptr;
      const VolatilePointer word = parent.children[current + distance].load_acquire();
      if (word.is_null()) return nullptr;
      return border_page(tree_page(worker_.view().resolve(word.thawed())));
    });
  }

  /// Stores snapshot pages beside all pointers of an interior page, once per walk.
  Status install_children(LayerWalk& walk, InteriorPage* page, Step& step) {
    CHECK(page->header.level > 0 && page->header.level < walk.levels.size());
    LayerWalk::Level& level = walk.levels[page->header.level - 1];
    if (walk.slice < level.done_to) return Status::ok;
    const SliceRange range = range_of(*page);
    const Status status =
        find_snapshot_level(worker_, walk.root, page->header.level - 1u, range, level.snapshot);
    if (status != Status::ok) return status;
    walk.is_damaged = walk.is_damaged || level.snapshot.is_damaged;
    for (const SnapshotPointer each : level.snapshot.unreadable) unreadable_.insert(each.word());
    if (walk.is_seam) return Status::ok;  // the parts have installed all pointers
    // For `divide_cold` (R23). Without free pages it leaves the pointer to the next snapshot.
    const bool may_rebuild = worker_.reserve_pages(kPagesPerAdoption);
    const HoldTimer timer(report_);
    ScopedLock lock;
    if (!lock.lock_page(worker_, page)) return Status::cluster_failed;
    const PageVersion version = page->header.version();
    if (version.is_moved()) {
      step = Step::again;
      return Status::ok;
    }
    DCHECK(version.count() > 0 && version.count() <= kInteriorCapacity);
    const ChildRanges children(*page, version.count());
    for (uint32_t i = 0; i < children.size(); ++i) {
      const SliceRange child = children.range(i);
      if (!overlap(child, walk.part)) continue;
      const auto pieces = pages_that_fill(level.snapshot.pages, child);
      if (!pieces.empty() && page->children[children[i]].load_acquire().has_delta()) {
        if (divide_cold(page, children[i], pieces)) continue;
        if (may_rebuild) {
          rebuild_interior(worker_, page);
          walk.has_progress = true;
          step = Step::again;
          return Status::ok;
        }
        record_missed(walk);
        continue;
      }
      install(page->children[children[i]], page_of_range(level.snapshot.pages, child),
              walk.part.contains(child.low));
    }
    level.done_to = range.high_is_end ? ~uint64_t{0} : range.high;
    DCHECK(level.done_to >= walk.slice);
    return Status::ok;
  }

  /// Divides the range of a cold pointer with a delta mark, because several pages of the snapshot
  /// fill it: keys were inserted into the delta tree (R80). The pointer gets the first page. New
  /// pointers are appended, one for each other page (R3). In between, the last pointer leads to the
  /// old page, which covers more than the rest of the range. Its records in other ranges are not
  /// wrong: the delta tree has all changes since that page until all pointers are installed.
  /// Returns false if the page has no room for all of them. REQUIRES: the page is locked.
  bool divide_cold(InteriorPage* page, uint32_t slot, std::span<const SnapshotLevelPage> pieces) {
    DCHECK(holds_page(worker_, page) && !page->header.version().is_moved());
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const PageVersion version = page->header.version();
      const uint32_t count = version.count();
      if (count == kInteriorCapacity || count - page->sorted_count() >= kInteriorTail) return false;
      DualPointer& pointer = page->children[slot];
      DualPointer& rest = page->children[count];
      const uint64_t old = pointer.snapshot_word.load(std::memory_order_relaxed);
      rest.snapshot_word.store(old, std::memory_order_relaxed);
      rest.volatile_word.store(next_null(storage_, true).word(), std::memory_order_relaxed);
      DCHECK(page->contains(pieces[i + 1].range.low));
      DCHECK(pieces[i].range.high == pieces[i + 1].range.low && !pieces[i].range.high_is_end);
      page->separators[count] = pieces[i + 1].range.low;
      page->header.set_version(version.with_insert(false));
      const VolatilePointer seen = pointer.load_acquire();
      CHECK(seen.has_delta() && replace_cold(storage_, pointer, seen, pieces[i].page));
      slot = count;
      ++report_.divided;
    }
    const VolatilePointer seen = page->children[slot].load_acquire();
    CHECK(replace_cold(storage_, page->children[slot], seen, pieces.back().page));
    return true;
  }

  struct Layer {
    uint64_t slice;
    TreeRecord* record;
    SnapshotPointer root;
  };

  /// Stores snapshot pages beside the pointers from a border page to lower layers, walks these
  /// layers, and drops their roots.
  Status install_layers(LayerWalk& walk, BorderPage* page, Step& step) {
    const uint32_t count = page->header.version().count();
    DCHECK(page->is_border() && count <= page->slot_capacity());
    std::vector<Layer> layers;
    for (uint32_t slot = 0; slot < count; ++slot) {
      TreeRecord* record = page->record(slot);
      if (!record->head.load_acquire().is_next_layer()) continue;
      if (!walk.part.contains(page->slices()[slot])) continue;
      layers.push_back({page->slices()[slot], record, {}});
      const Status status = find_snapshot_layer(walk, layers.back());
      if (status != Status::ok) return status;
    }
    if (layers.empty()) return Status::ok;
    reach(SyncPoint::found_layers);
    {
      const HoldTimer timer(report_);
      ScopedLock lock;
      if (!lock.lock_page(worker_, page)) return Status::cluster_failed;
      // Slots stay in place until the page is moved. A layer that was created meanwhile has no
      // snapshot page, and neither have the pages below it.
      if (page->header.version().is_moved() && !fault::install_in_moved_pages) {
        step = Step::again;
        return Status::ok;
      }
      for (const Layer& layer : layers) {
        install(*layer.record->next_layer(), layer.root, !walk.has_counted_layers);
      }
      walk.has_counted_layers = true;  // the step is repeated after each large layer
    }
    for (const Layer& layer : layers) {
      const Status status = install_layer(walk, page, layer, step);
      if (status != Status::ok || step == Step::again) return status;
    }
    return Status::ok;
  }

  Status install_layer(const LayerWalk& walk, BorderPage* holder, const Layer& layer, Step& step) {
    const Link link{layer.record->next_layer(), holder};
    const VolatilePointer word = link.pointer->load_acquire();
    if (word.is_null()) return Status::ok;
    TreePage* root = tree_page(worker_.view().resolve(word.thawed()));
    LayerWalk below;
    below.prefix = walk.prefix;
    std::byte bytes[8];
    put_slice(layer.slice, bytes);
    below.prefix.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
    below.root = layer.root;
    if (root->is_border() && !root->header.version().is_moved()) {
      // Most layers are a single page, which this turn handles at once.
      const Status status = install_layers(below, border_page(root), step);
      if (status == Status::ok && step == Step::done) drop(below, link, root);
      return status;
    }
    const auto done = done_layers_.find(below.prefix);
    if (done == done_layers_.end()) {
      // The turns of walk_layer invalidate the pages found so far.
      step = Step::again;
      const Status status = walk_layer(below);
      done_layers_[below.prefix] = below.is_damaged;
      return status;
    }
    below.is_damaged = done->second;
    if (!root->is_border()) drop(below, link, root);
    return Status::ok;
  }

  Status find_snapshot_layer(LayerWalk& walk, Layer& layer) {
    if (walk.root.is_null() || is_stand_in(walk.root)) return Status::ok;
    SnapshotBorder border;
    const Status status = find_snapshot_border(worker_, walk.root, layer.slice, border);
    if (status == Status::ok) find_layer_root(border, layer);
    worker_.leave_snapshots();
    if (status != Status::snapshot_unreadable) return status;
    walk.is_damaged = true;
    return Status::ok;
  }

  static void find_layer_root(const SnapshotBorder& border, Layer& layer) {
    const uint32_t count = border.page->header.version().count();
    const uint64_t* slices = border.page->slices();
    for (uint32_t slot = border.page->find_lower_bound(layer.slice, count);
         slot < count && slices[slot] == layer.slice; ++slot) {
      TreeRecord* record = border.page->record(slot);
      if (!record->head.load_acquire().is_next_layer()) continue;
      layer.root =
          SnapshotPointer(record->next_layer()->snapshot_word.load(std::memory_order_relaxed));
    }
  }

  /// Returns whether a page has no volatile neighbour below its parent. If such a page is empty, no
  /// merge can remove it, so it may be dropped (R71). An only child counts, too: a merge with pages
  /// of other parents was tried before. The result is a hint: the parent may change.
  static bool is_between_cold_pages(const Link& link) {
    CHECK(link.holder != nullptr && !link.holder->is_border());
    const InteriorPage& parent = *interior_page(link.holder);
    const PageVersion version = parent.header.version();
    if (version.is_moved()) return false;
    const ChildRanges children(parent, version.count());
    uint32_t at = 0;
    while (at < children.size() && &parent.children[children[at]] != link.pointer) ++at;
    const auto is_cold = [&](uint32_t position) {
      return parent.children[children[position]].load_acquire().is_null();
    };
    if (at == children.size()) return false;
    return (at == 0 || is_cold(at - 1)) && (at + 1 == children.size() || is_cold(at + 1));
  }

  /// Drops a page if the snapshot has its content and the drop policy permits it. `checks_first`:
  /// checks without locks whether the page must be retained, before it calls the policy. Pass false
  /// if this is known.
  void drop(const LayerWalk& walk, const Link& link, TreePage* page, bool checks_first = true) {
    DCHECK(link.holder != nullptr && page->header.storage_id == id_);
    const bool is_layer_root = link.holder->header.layer != page->header.layer;
    const SnapshotPointer snapshot =
        is_layer_root
            ? walk.root
            : page_of_range(walk.levels[page->header.level].snapshot.pages, range_of(*page));
    if (snapshot.is_null()) return;
    if (has_next_bound_inside(*page)) {
      ++report_.kept;
      return;
    }
    // R56: only the volatile page has the records of a page that cannot be read.
    const bool is_lost = is_stand_in(snapshot) || unreadable_.contains(snapshot.word());
    if (is_lost && !fault::drop_onto_stand_ins) return;
    const bool may_be_empty = page->header.version().count() == (page->is_border() ? 0 : 1);
    const DropTask drop{.link = link,
                        .page = page,
                        .snapshot = snapshot,
                        .epoch = task_.epoch,
                        .drops_empty = may_be_empty && !is_layer_root && !fault::keep_empty_pages &&
                                       is_between_cold_pages(link),
                        .waits = walk.is_seam || task_.part.low != 0 || !task_.part.high_is_end,
                        // If the layer is damaged, a snapshot page may exist but be unreadable.
                        .drops_below = !walk.is_damaged || fault::drop_onto_stand_ins};
    below_.clear();
    if (checks_first && seems_needed(worker_, drop, below_)) return;
    // Calls the drop policy last, because it counts each page that it releases. One hot page
    // retains the whole set.
    const auto is_free = [&](PageHeader* each) { return may_drop(task_, *each, report_); };
    if (!std::ranges::all_of(below_, is_free) || !is_free(&page->header)) return;
    const HoldTimer timer(report_);
    uint32_t pages = 0;
    const Dropped dropped = drop_tree_page(worker_, storage_, drop, pages);
    report_.dropped += dropped == Dropped::yes ? pages : 0;
    report_.busy += dropped == Dropped::busy ? 1 : 0;
  }

  /// Returns whether a partition of the next snapshot begins inside the range of the page (R85).
  bool has_next_bound_inside(const TreePage& page) const {
    if (page.header.layer != 0 || fault::drop_across_next_bounds) return false;
    DCHECK(std::ranges::is_sorted(task_.next_bounds));
    const SliceRange range = range_of(page);
    const auto bound = std::ranges::upper_bound(task_.next_bounds, range.low);
    return bound != task_.next_bounds.end() && range.contains(*bound);
  }

  static Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

  /// Limit of repeated attempts at one path. It exceeds the number of attempts that make progress:
  /// one for each layer of the border page, and one for each replacement.
  static constexpr uint32_t kMaxFailures = 100 + kBorderSlotBound;
  /// Maximum number of replacements on one path. Concurrent deletes could cause ever more of them.
  static constexpr uint32_t kMaxReclaims = 16;

  WorkerContext& worker_;
  StorageControl& storage_;
  const uint32_t id_;
  const InstallTask& task_;
  InstallReport& report_;
  bool has_missed_ = false;
  /// Layers below the current border pages: by prefix, whether they are damaged.
  std::map<std::string, bool> done_layers_;
  std::set<uint64_t> unreadable_;   // words of the snapshot's pages that could not be read
  std::vector<PageHeader*> below_;  // pages of the current drop set
};

}  // namespace

Status install_mastertree(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report) {
  return TreeInstaller(worker, storage, task, report).run();
}

Status install_seams(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                     std::span<const uint64_t> bounds, const InstallReport& parts,
                     InstallReport& report) {
  DCHECK(std::ranges::is_sorted(bounds));
  Status status = Status::ok;
  if (is_tree(storage.type)) {
    status = TreeInstaller(worker, storage, task, report).run_seams(bounds, parts.is_damaged);
  }
  worker.leave();
  if (status != Status::ok) report.oldest_left = 0;
  return status;
}

}  // namespace atolldb
