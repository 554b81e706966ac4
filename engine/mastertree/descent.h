// Lock-free descent to the page and record of a key. A reader follows a pointer that is probably
// right, checks the child's fences, and retries locally. This header also has adoption, which a
// descent performs when it meets a moved page, and the search for a record that has moved. Source:
// [FOEDUS15] section 8.2.
#pragma once

#include <cstdint>

#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// The pointer that leads to a page, and the page that holds this pointer. The holder's page lock
/// guards changes of the pointer. The storage's root pointer has no holder: the root lock guards
/// it.
struct Link {
  DualPointer* pointer = nullptr;
  TreePage* holder = nullptr;  // null: `pointer` is the root pointer of the storage
};

/// Returns whether type, level and number of slots of a page agree. This holds for every page that
/// a begin epoch protects, at any time.
inline bool is_sound(const TreePage* page, PageVersion version) {
  if (page->is_border()) {
    return page->header.type == PageType::mastertree_border &&
           version.count() <= static_cast<const BorderPage*>(page)->slot_capacity();
  }
  return page->header.type == PageType::mastertree_interior && version.count() != 0 &&
         version.count() <= kInteriorCapacity;
}

inline Link root_link(StorageControl& storage) { return {&storage.root, nullptr}; }

/// Returns the slice range that the worker's memo stores for a page.
inline PageMemo::Range range_in_memo(const TreePage* page) {
  DCHECK(page->high_is_end() || page->low < page->high);
  return {page->low, page->last()};
}

/// A pointer with a null volatile word, at which a descent has ended: the tree is empty, or the
/// rest of the path is in a snapshot only.
struct MissingPage {
  DualPointer* pointer = nullptr;
  DualPointer::View view{};

  explicit operator bool() const { return pointer != nullptr; }
};

/// A border page that covers the slice, and that was not moved when its version was read.
struct BorderView {
  BorderPage* page = nullptr;  // null: `missing` is set, or `dropped` is true
  PageVersion version{};
  bool dropped = false;  // a page was dropped: the caller starts again at the first layer
  MissingPage missing{};
};

/// Whether a descent adopts the successors of moved pages that it meets, if the needed locks are
/// free. Descents within a commit do not adopt, because that would take pages that were reserved
/// for the commit's appends. They also do not wait for a page that is being replaced, but report it
/// as dropped (R23).
enum class Adoption : uint8_t {
  yes,
  no,
  whole_way,  // same as yes, but starts at the root, not at a border page in the memo
};

/// Descends one layer to the border page that covers `slice`.
BorderView find_border(WorkerContext& worker, StorageControl& storage, Link link, uint64_t slice,
                       Adoption adoption = Adoption::yes);

/// Waits while the layer below `link` is being dropped, until the page that holds `link` is marked
/// as moved. The thread that drops the layer also replaces that page (R45). A caller that restarts
/// afterwards does not meet the dropped layer again. Returns ok or cluster_failed.
Status await_drop(const WorkerContext& worker, const Link& link);

enum class Match : uint8_t {
  none,        // no record with this slice and length
  record,      // the record of this key
  next_layer,  // the key continues in the layer below
  conflict,    // another key with the same slice and a different suffix
};

struct SlotView {
  Match match = Match::none;
  uint32_t slot = 0;
  TreeRecord* record = nullptr;
};

/// Finds the key among the slots that `version` counts. A record that is being written may become a
/// next layer, so the function waits until the write ends. With `may_wait` false, for callers that
/// hold locks, it returns `conflict` for such a record (R23).
SlotView find_slot(WorkerContext& worker, BorderPage* page, PageVersion version,
                   const LayerKey& key, bool may_wait = true);

/// The place of a key: its record, or the page that would hold the record.
struct Location {
  TreeRecord* record = nullptr;  // null: the key is absent
  /// If the key is absent: a record with the same slice and another suffix, or null. If there is
  /// such a record, an insert needs a next layer.
  TreeRecord* conflict = nullptr;
  BorderPage* page = nullptr;  // null: no page; `missing` is set
  PageVersion version{};
  Link link{};          // leads to the root of the last layer
  uint16_t key_at = 0;  // key bytes consumed by the layers above
  MissingPage missing{};
};

/// Descends layer by layer to the place of `key`. `root`: link to the root of the first layer.
Location locate(WorkerContext& worker, StorageControl& storage, Bytes key, Link root);
inline Location locate(WorkerContext& worker, StorageControl& storage, Bytes key) {
  return locate(worker, storage, key, root_link(storage));
}

/// Number of pages that an adoption reserves, for the successors of an interior page.
inline constexpr uint32_t kPagesPerAdoption = 2;

/// Makes `link` lead to the successors of `page` and retires the page. If a needed lock is not
/// free, leaves this to a later descent. Holds no lock on return. REQUIRES: `page` is moved, its
/// twins are set, `link` led to it, and the caller holds no lock.
void adopt(WorkerContext& worker, StorageControl& storage, const Link& link, TreePage* page);

/// Hook for mutants, called after a parent has got a new child in this slot.
ATOLL_HOOK(after_adoption, InteriorPage*, uint32_t)

/// Replaces an interior page by one or two sorted ones (R3). The page is moved on return; its own
/// parent adopts the successors later. REQUIRES: the page is locked and not moved, and the caller
/// has reserved two pages.
void rebuild_interior(WorkerContext& worker, InteriorPage* page);

/// Returns the border page that holds `slice` now and has not moved, and its version. Follows twins
/// from `page` on. Returns null if the page was dropped, or if its mover has not set the twins yet:
/// commits call this with locks held, and do not wait for a mover (R23).
BorderPage* current_page(WorkerContext& worker, TreePage* page, uint64_t slice,
                         PageVersion& version);

/// Replaces `record`, which is relocated, by the current record of its key. Follows the twins of
/// its page, and next layers. Takes no locks, so the result may already be stale. `payload_at`:
/// bytes from head to payload. Returns false if the key has no record any more: a compaction
/// removed it, or its page was dropped (R8). Returns false for arrays, which have no twins.
bool track_moved(WorkerContext& worker, RecordHead*& record, uint16_t& payload_at);

}  // namespace atolldb
