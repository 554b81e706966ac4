// The second search for a key that a look-up has not found (R108).
#include <cstring>

#include "engine/hooks/mutants.h"
#include "engine/mastertree/descent.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Returns whether a record that was committed since the worker's begin epoch may have been removed
/// from the page or its predecessors. The page would then lack a key that was committed and
/// drained. Such a record has raised the newest removed version of the page (R43).
bool may_lack_commits(WorkerContext& worker, const BorderPage& page) {
  const Vid removed(page.header.max_removed_vid.load(std::memory_order_acquire));
  const uint64_t begin_epoch = worker.slot().begin_epoch.load(std::memory_order_relaxed);
  return removed.epoch() >= begin_epoch && !fault::absences_forget_drains;
}

/// Returns whether `record`, with the slice of `key`, certainly has another key, and is no next
/// layer. REQUIRES: find_slot has returned Match::conflict for it.
bool has_other_key(const TreeRecord* record, const LayerKey& key) {
  if (fault::absences_ignore_writers) return true;
  const Vid vid = record->head.load_acquire();
  // A record that is being written may become a next layer, and does not become any other again.
  if (vid.is_being_written() || vid.is_next_layer()) return false;
  return record->head.remainder != key.remainder ||
         std::memcmp(record->suffix(), key.suffix().data(), key.suffix().size()) != 0;
}

}  // namespace

bool search_absent_key(WorkerContext& worker, const AbsenceEntry& entry, RecordHead*& record) {
  record = nullptr;
  LayerKey key(entry.key_span());
  TreePage* page = tree_page(entry.page);
  DCHECK(entry.key_bytes <= AbsenceEntry::kMaxKeyBytes && !entry.seen.is_moved());
  DCHECK(page->is_border() && page->contains(key.slice));
  for (;;) {
    PageVersion version;
    BorderPage* border = current_page(worker, page, key.slice, version);
    if (border == nullptr) return false;
    // R21: this load decides which slots the page has. The page is in place, so no other page holds
    // the key at this time.
    version = PageVersion(border->header.version_word.load(std::memory_order_seq_cst));
    if (version.is_moved() || may_lack_commits(worker, *border)) return false;
    DCHECK(border->header.is_delta != 0 && border->contains(key.slice));
    const SlotView slot = find_slot(worker, border, version, key, false);
    switch (slot.match) {
      case Match::none:
        return true;
      case Match::record:
        record = &slot.record->head;
        return true;
      case Match::conflict:
        return has_other_key(slot.record, key);
      case Match::next_layer:
        break;
    }
    const VolatilePointer root = slot.record->next_layer()->load_acquire();
    if (root.is_null()) return false;
    page = tree_page(worker.resolve(root.thawed()));
    DCHECK(key.remainder > 8 && page->header.layer == border->header.layer + 1);
    key = key.next();
  }
}

}  // namespace atolldb
