#include "engine/mastertree/reclaim.h"

#include "engine/hooks/mutants.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/restructure.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Minimum length of a run of empty pages that a walk merges. A walk meets each page once per
/// snapshot, so it also merges pairs. Hints come at every delete, and wait for longer runs
/// (kMinMergeRun).
constexpr uint32_t kMinRunOfWalk = 2;

/// Returns whether a compaction makes room for a lone record in the slot of its layer (R70): in one
/// successor, or in two if the page has several slices.
bool has_room_for(BorderPage& page, PageVersion version, const TreeRecord* lone) {
  const uint32_t raised = raised_bytes(lone);
  uint32_t bytes = raised + kSlotBytes;
  bool has_one_slice = true;
  for (uint32_t slot = 0; slot < version.count(); ++slot) {
    bytes += copied_bytes(page.record(slot), 0) + kSlotBytes;
    has_one_slice = has_one_slice && page.slices()[slot] == page.slices()[0];
  }
  return bytes <= kBorderUsableBytes || (!has_one_slice && raised <= kBorderUsableBytes / 4);
}

bool reclaim_border(WorkerContext& worker, StorageControl& storage, BorderPage* page);

/// Reclaims from the layer below `link` if the layer is a single page, and adopts the successor.
/// The layer may then be empty or have one record, which the page above can reclaim.
void reclaim_layer(WorkerContext& worker, StorageControl& storage, const Link& link) {
  const VolatilePointer word = link.pointer->load_acquire();
  if (word.is_null() || word.is_frozen()) return;
  TreePage* root = tree_page(worker.view().resolve(word));
  if (!root->is_border()) return;  // the walk visits the pages of a larger layer one by one
  const bool is_stale =
      root->header.version().is_moved() || reclaim_border(worker, storage, border_page(root));
  if (is_stale) {
    static_cast<void>(find_border(worker, storage, link, 0, Adoption::whole_way));
  }
}

/// Reclaims from the layers below a border page, then from the page itself. Returns whether the
/// page was replaced.
bool reclaim_border(WorkerContext& worker, StorageControl& storage, BorderPage* page) {
  const PageVersion version = page->header.version();
  if (version.is_moved()) return false;
  DCHECK(version.count() <= page->slot_capacity());
  for (uint32_t slot = 0; slot < version.count(); ++slot) {
    TreeRecord* record = page->record(slot);
    if (!record->head.load_acquire().is_next_layer()) continue;
    reclaim_layer(worker, storage, {record->next_layer(), page});
  }
  const PageContent content = content_of(worker, page, version);
  const bool is_mostly_dead = content.removable != 0 && content.removable * 2 >= version.count();
  const bool is_worth = is_mostly_dead || content.has_empty_layer || content.has_lone_record;
  return is_worth && compact(worker, page, true);
}

}  // namespace

PageContent content_of(WorkerContext& worker, BorderPage* page, PageVersion version) {
  const uint64_t limit = removable_epoch(worker);
  PageContent content;
  for (uint32_t slot = 0; slot < version.count(); ++slot) {
    TreeRecord* record = page->record(slot);
    const Vid vid = record->head.load_acquire();
    if (vid.is_next_layer()) {
      BorderPage* root = only_page_below(worker, record);
      if (root == nullptr) continue;
      if (root->header.version().count() == 0) {
        content.has_empty_layer = true;
        ++content.removable;
      } else if (!content.has_lone_record) {
        const TreeRecord* lone = lone_record_of(root);
        content.has_lone_record = lone != nullptr && has_room_for(*page, version, lone);
      }
    } else if (is_removable(vid, limit)) {
      ++content.removable;
    } else if (vid.is_deleted()) {
      ++content.young;
    }
  }
  DCHECK(content.removable + content.young <= version.count());
  return content;
}

bool compact(WorkerContext& worker, BorderPage* page, bool collapses_layers) {
  // Also reserves pages for the adoption that follows. Without an adoption the old page would stay
  // on the path. An installer could then drop nothing below it, although the pool is exhausted.
  if (!worker.reserve_pages(kPagesPerRestructure + kPagesPerAdoption)) return false;
  ScopedLock lock;
  if (!lock.try_lock_page(worker, page)) return false;
  if (page->header.version().is_moved()) return false;
  RestructureRequest request;
  request.compaction_only = true;
  request.collapses_layers = collapses_layers;
  return restructure(worker, nullptr, page, request, lock) == Status::ok;
}

bool reclaim_path(WorkerContext& worker, StorageControl& storage, const Link& root, uint64_t slice,
                  BorderPage* page) {
  DCHECK(page->contains(slice));
  if (fault::reclaim_by_hints_only) return false;
  bool is_replaced = reclaim_border(worker, storage, page);
  const BorderView view = is_replaced
                              ? find_border(worker, storage, root, slice, Adoption::whole_way)
                              : BorderView{.page = page, .version = page->header.version()};
  if (view.page == nullptr || view.version.is_moved() || view.version.count() != 0) {
    return is_replaced;
  }
  return merge_around(worker, storage, root, slice, kMinRunOfWalk) || is_replaced;
}

}  // namespace atolldb
