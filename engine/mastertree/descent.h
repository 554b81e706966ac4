// Finding the page and the record for a key, without locks (foedus.txt section 8.2): read a
// probably-right pointer, check the child's fences, retry locally.
#pragma once

#include <cstdint>

#include "engine/mastertree/key.h"
#include "engine/mastertree/page.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// The one word that leads to a page, and what guards its changes: the lock of the page that holds
/// it, or, for a storage's root word, the root lock.
struct Link {
  DualPointer* pointer = nullptr;
  TreePage* holder = nullptr;  // null: the storage root
};

inline Link root_link(StorageControl& storage) { return {&storage.root, nullptr}; }

/// What the worker remembers of a page that it has looked at.
inline PageMemo::Range range_in_memo(const TreePage* page) {
  return {page->low, page->high_is_end != 0 ? ~uint64_t{0} : page->high - 1};
}

/// A pointer on the way down whose volatile word is null: an empty tree, or what follows is in a
/// snapshot only.
struct MissingPage {
  DualPointer* pointer = nullptr;
  DualPointer::View view{};

  explicit operator bool() const { return pointer != nullptr; }
};

/// A border page that was not moved when its version was read, and covers the slice.
struct BorderView {
  BorderPage* page = nullptr;  // null: there is none (`missing`), or the layer was dropped
  PageVersion version{};
  bool dropped = false;  // start again at the first layer
  MissingPage missing{};
};

/// Whether a descent adopts the splits that it meets, as far as locks are free. Not within a
/// commit: that would take pages which were set aside for its appends. Nor does it wait there for a
/// page that is just being replaced, but takes it for dropped (R23).
enum class Adoption : uint8_t {
  yes,
  no,
  whole_way,  // as yes, and from the root on: not from a border page that the worker remembers
};

/// Descends one layer.
BorderView find_border(WorkerContext& worker, StorageControl& storage, Link link, uint64_t slice,
                       Adoption adoption = Adoption::yes);

/// A record of `page` has moved: waits until the page word says so, too (R7 stores the VIDs first),
/// so that whoever looks again does not meet the same page. The mover may have been descheduled; if
/// it died, cluster_failed (R24).
Status await_move(const WorkerContext& worker, const PageHeader* page);

/// The layer behind `link` was dropped: waits until the page with its slot, which is being
/// compacted (R45), says that it has moved, so that whoever starts again does not come here again.
Status await_drop(const WorkerContext& worker, const Link& link);

enum class Match : uint8_t {
  none,        // no record with this slice and length
  record,      // this very key
  next_layer,  // go on in the layer below
  conflict,    // another key with the same slice and a different suffix
};

struct SlotView {
  Match match = Match::none;
  uint32_t slot = 0;
  TreeRecord* record = nullptr;
};

/// Looks for the key among the slots that `version` counts. A record that is just being written may
/// become a next layer: who holds locks does not wait for that, and takes it for another key (R23).
SlotView find_slot(WorkerContext& worker, BorderPage* page, PageVersion version,
                   const LayerKey& key, bool may_wait = true);

/// Where a key is, or would be.
struct Location {
  TreeRecord* record = nullptr;    // null: absent
  TreeRecord* conflict = nullptr;  // absent, and this record has the same slice: a layer is needed
  BorderPage* page = nullptr;      // null: there is none, see `missing`
  PageVersion version{};
  Link link{};          // root of the last layer
  uint16_t key_at = 0;  // key bytes consumed by the layers above
  MissingPage missing{};
};

/// Descends all layers.
Location locate(WorkerContext& worker, StorageControl& storage, Bytes key);

}  // namespace atolldb
