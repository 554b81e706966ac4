#include "engine/mastertree/descent.h"

#include <cstring>

#include "engine/format/slot_search.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/prefetch.h"
#include "engine/transaction/dual_pointer.h"
#include "shared/base/check.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

namespace {

Vid stable_vid(WorkerContext& worker, const TreeRecord* record) {
  for (uint32_t turns = 0;; spin_or_yield(turns)) {
    const Vid vid = record->head.load_acquire();
    if (!vid.is_being_written() || worker.cluster_failed()) return vid;
    reach(SyncPoint::awaiting_writer);
  }
}

/// Finds the border page in the worker's memo. Returns false if it is not there, or does not hold
/// the slice any more.
bool recall_border(WorkerContext& worker, const Link& link, uint64_t slice, BorderView& view) {
  const PageMemo::Entry* entry = worker.memo().find(link.pointer, slice);
  if (entry == nullptr) return false;
  TreePage* page = tree_page(entry->page);
  const PageVersion version = page->header.version();
  DCHECK(page->is_border() && is_sound(page, version));
  if (version.is_moved()) return false;
  // The range of a page never changes. So an entry with a known range holds the slice.
  DCHECK(!entry->range.is_known() || page->contains(slice));
  if (!entry->range.is_known()) {
    if (!page->contains(slice)) return false;
    worker.memo().remember(link.pointer, slice, entry->page, range_in_memo(page));
  }
  worker.count_access(page->self().node());
  worker.count_use(&page->header);
  view.page = border_page(page);
  view.version = version;
  return true;
}

/// Returns the node's directory if it has the border pages below `root`, or null.
PageDirectory* directory_of(const WorkerContext& worker, const StorageControl& storage,
                            const void* root) {
  return storage.type == StorageType::hash && root == &storage.root ? worker.directory() : nullptr;
}

/// Finds the border page in the node's directory (R86).
bool find_in_directory(WorkerContext& worker, const PageDirectory& directory, uint32_t storage_id,
                       uint64_t slice, BorderView& view) {
  view.page = directory.find(worker.view(), storage_id, slice, view.version);
  if (view.page == nullptr) return false;
  DCHECK(view.page->header.layer == 0 && is_sound(view.page, view.version));
  worker.count_access(view.page->self().node());
  worker.count_use(&view.page->header);
  return true;
}

/// Keeps the border page for the next look-ups. `root`: root of the first layer.
void keep_border(WorkerContext& worker, const StorageControl& storage, const void* root,
                 uint64_t slice, TreePage* page) {
  PageDirectory* const directory = directory_of(worker, storage, root);
  if (directory != nullptr) {
    directory->remember(worker.view(), storage.id, slice, page);
  } else {
    worker.memo().remember(root, slice, &page->header, range_in_memo(page));
  }
}

/// Returns whether the child in `slot` is in a snapshot only. `version`: version of the page when
/// `find` returned the slot. Returns false if the caller must retry:
/// - the child has a volatile page now, or
/// - the page is being replaced, so its null words are frozen (R3), or
/// - the page has a new child. The slice may then belong to the new child, and the old child's
///   snapshot page may not cover it.
bool is_missing(InteriorPage* interior, uint32_t slot, PageVersion version, MissingPage& missing) {
  missing = {&interior->children[slot], load_both(interior->children[slot])};
  const bool is_same = interior->header.version() == version || fault::missing_without_version;
  const VolatilePointer word = missing.view.page;
  const bool is_it = word.is_null() && !is_frozen_null(word) && is_same;
  if (!is_it) missing = {};
  return is_it;
}

/// Descends once from the root of the layer, and fills the empty `view`. Returns true if a page on
/// the path was dropped (R8) and its parent does not show that yet: the caller starts at the root
/// again.
inline bool descend(WorkerContext& worker, StorageControl& storage, Link link, uint64_t slice,
                    Adoption adoption, const void* first_layer, BorderView& view) {
  DCHECK(view.page == nullptr && !view.dropped && !view.missing);
  uint32_t turns = 0;
  const DualPointer::View root = load_both(*link.pointer);
  if (root.page.is_null()) {
    // R3: a frozen null word decides nothing. The caller waits until the page that holds the word
    // is replaced (await_drop).
    view.dropped = is_frozen_null(root.page);
    if (!view.dropped) view.missing = {link.pointer, root};
    return false;
  }
  TreePage* const root_page = tree_page(worker.resolve(root.page.thawed()));
  TreePage* page = root_page;
  for (;;) {
    const PageVersion version = page->header.version();
    DCHECK(is_sound(page, version));
    if (version.is_moved()) {
      if (version.is_dropped()) {
        view.dropped = true;
        return page != root_page && adoption != Adoption::no;
      }
      const VolatilePointer twin = page->twin_for(slice);
      if (twin.is_null()) {
        if (worker.cluster_failed() || adoption == Adoption::no) {
          view.dropped = true;
          return false;
        }
        reach(SyncPoint::awaiting_move);
        spin_or_yield(turns);
        continue;
      }
      // `link` may already lead to the twin, so `adopt` checks it under its locks. It gets a copy,
      // so that `link` stays in registers.
      if (adoption != Adoption::no && link.pointer != nullptr)
        adopt(worker, storage, Link(link), page);
      link.pointer = nullptr;  // the link to the twin is not known here
      page = tree_page(worker.resolve(twin));
      continue;
    }
    if (page->is_border()) {
      DCHECK(page->contains(slice));
      worker.count_use(&page->header);
      view.page = border_page(page);
      view.version = version;
      if (first_layer != nullptr) keep_border(worker, storage, first_layer, slice, page);
      return false;
    }
    InteriorPage* interior = interior_page(page);
    const uint32_t slot = interior->find(slice, version.count());
    DCHECK(slot < version.count());
    reach(SyncPoint::found_child);
    const VolatilePointer word = interior->children[slot].load_acquire();
    if (word.is_frozen()) {
      // R3: load the word first, then the twins. A frozen word may be followed only while the page
      // has no successor yet.
      const VolatilePointer twin = interior->twin_for(slice);
      if (!twin.is_null()) {
        if (adoption != Adoption::no && link.pointer != nullptr)
          adopt(worker, storage, Link(link), page);
        link.pointer = nullptr;
        page = tree_page(worker.resolve(twin));
        continue;
      }
    }
    if (word.is_null()) {
      if (is_missing(interior, slot, version, view.missing)) return false;
      // R23: a caller that holds locks does not wait for a page that is being replaced.
      if (worker.cluster_failed() || adoption == Adoption::no) {
        view.dropped = true;
        return false;
      }
      reach(SyncPoint::awaiting_move);
      spin_or_yield(turns);
      continue;
    }
    TreePage* child = tree_page(worker.resolve(word.thawed()));
    prefetch_page_start(child, interior->header.level == 1);
    if (!child->contains(slice)) {
      // An adoption is between its two stores, or the slot count is out of date: retry.
      spin_or_yield(turns);
      continue;
    }
    DCHECK(child->header.level + 1 == interior->header.level);
    link = {&interior->children[slot], interior};
    page = child;
  }
}

}  // namespace

BorderView find_border(WorkerContext& worker, StorageControl& storage, Link link, uint64_t slice,
                       Adoption adoption) {
  DCHECK(link.pointer != nullptr);
  reach(SyncPoint::descending);
  const void* first_layer = link.holder == nullptr ? link.pointer : nullptr;
  // The only view: it lies in the memory of the caller's result, so it is not copied.
  BorderView view;
  // If the root word is null, the storage is in a snapshot only or empty, and the memo is not used.
  if (first_layer != nullptr && adoption != Adoption::whole_way &&
      !link.pointer->load_acquire().is_null()) {
    const PageDirectory* const directory = directory_of(worker, storage, first_layer);
    const bool is_found = directory != nullptr
                              ? find_in_directory(worker, *directory, storage.id, slice, view)
                              : recall_border(worker, link, slice, view);
    if (is_found) return view;
  }
  for (uint32_t turns = 0;;) {
    const bool again = descend(worker, storage, link, slice, adoption, first_layer, view);
    if (!again || worker.cluster_failed()) [[likely]]
      return view;
    DCHECK(view.page == nullptr && view.dropped);
    // The words of a moved holder never change. The word may lead to a moved root whose successor
    // was dropped. Every retry would find the same dropped page, so the caller starts again.
    if (link.holder != nullptr && link.holder->header.version().is_moved()) return view;
    view.dropped = false;
    reach(SyncPoint::awaiting_move);
    spin_or_yield(turns);
  }
}

Status await_drop(const WorkerContext& worker, const Link& link) {
  if (worker.cluster_failed()) return Status::cluster_failed;
  CHECK(link.holder != nullptr);  // a first layer has no holder, and is never dropped
  const PageHeader* holder = &link.holder->header;
  for (uint32_t turns = 0; !holder->version().is_moved();) {
    if (worker.cluster_failed()) return Status::cluster_failed;
    const VolatilePointer root = link.pointer->load_acquire();
    const bool is_gone = root.is_null()
                             ? root.is_frozen()
                             : worker.view().resolve(root.thawed())->version().is_dropped();
    if (!is_gone) return Status::ok;
    reach(SyncPoint::awaiting_move);
    spin_or_yield(turns);
  }
  return worker.cluster_failed() ? Status::cluster_failed : Status::ok;
}

SlotView find_slot(WorkerContext& worker, BorderPage* page, PageVersion version,
                   const LayerKey& key, bool may_wait) {
  const uint32_t count = version.count();
  const uint64_t* slices = page->slices();
  DCHECK(page->is_border() && count <= page->slot_capacity());
  SlotView view;
  uint32_t slot = version.is_ascending() ? page->find_lower_bound(key.slice, count)
                                         : find_equal(slices, 0, count, key.slice);
  for (; slot < count; slot = find_equal(slices, slot + 1, count, key.slice)) {
    if (slices[slot] != key.slice) break;
    TreeRecord* record = page->record(slot);
    if (key.remainder <= 8) {
      if (record->head.remainder != key.remainder) continue;
      return {Match::record, slot, record};
    }
    if (record->head.remainder <= 8) continue;
    // Only one record with this slice can have a key that is longer than the slice.
    view.slot = slot;
    view.record = record;
    const Vid vid = may_wait ? stable_vid(worker, record) : record->head.load_acquire();
    if (!may_wait && vid.is_being_written()) {
      view.match = Match::conflict;
      return view;
    }
    if (vid.is_next_layer()) {
      view.match = Match::next_layer;
    } else if (record->head.remainder == key.remainder &&
               std::memcmp(record->suffix(), key.suffix().data(), key.suffix().size()) == 0) {
      view.match = Match::record;
    } else {
      view.match = Match::conflict;
    }
    return view;
  }
  return view;
}

Location locate(WorkerContext& worker, StorageControl& storage, Bytes key, Link root) {
  for (;;) {
    Location location;
    LayerKey rest(key);
    location.link = root;
    for (;;) {
      const BorderView border = find_border(worker, storage, location.link, rest.slice);
      if (border.dropped) {
        if (await_drop(worker, location.link) != Status::ok) return location;
        break;
      }
      location.page = border.page;
      location.version = border.version;
      if (border.page == nullptr) {
        location.missing = border.missing;
        return location;
      }
      const SlotView slot = find_slot(worker, border.page, border.version, rest);
      if (slot.match == Match::next_layer) {
        location.link = {slot.record->next_layer(), border.page};
        location.key_at = static_cast<uint16_t>(location.key_at + 8);
        DCHECK(location.key_at < key.size());
        rest = rest.next();
        continue;
      }
      location.record = slot.match == Match::record ? slot.record : nullptr;
      location.conflict = slot.match == Match::conflict ? slot.record : nullptr;
      return location;
    }
  }
}

}  // namespace atolldb
