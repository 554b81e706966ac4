#include <algorithm>
#include <array>

#include "engine/hooks/mutants.h"
#include "engine/mastertree/pack.h"
#include "engine/mastertree/reclaim.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/tree_path.h"
#include "engine/transaction/run.h"
#include "engine/transaction/storage_handle.h"

namespace atolldb {

namespace {

static_assert(kMaxTreeKeyBytes <= HintQueue::kMaxPrefixBytes);

/// Number of epochs that a hint waits before it is handled. A tombstone is removable once the epoch
/// of the deletion is settled and all transactions that ran then have ended. This usually takes at
/// least two epochs. `maintain` queues the hint again if its tombstones are still too young.
constexpr uint64_t kEpochsUntilRemovable = 3;
/// Minimum number of hints that one call of run_hints handles. A call handles more if more were
/// queued since the previous call. So the queue of a worker that deletes in bulk does not grow, and
/// other workers never wait long. The queue's capacity limits a call to about a millisecond.
constexpr uint32_t kMinHintsPerTurn = 4;

}  // namespace

void push_tombstone_hint(WorkerContext& worker, const TreePage* page,
                         std::span<const std::byte> prefix, uint64_t slice) {
  if (page->header.is_delta != 0 || worker.hints().contains(page->header.self)) return;
  DCHECK(page->is_border() && prefix.size() == size_t{page->header.layer} * 8);
  if (fault::lose_deep_hints && prefix.size() > 64) return;
  Hint hint;
  hint.not_before = worker.current_epoch() + kEpochsUntilRemovable;
  hint.page = page->header.self;
  hint.slice = slice;
  hint.storage_id = page->header.storage_id;
  hint.prefix_bytes = static_cast<uint32_t>(prefix.size());
  worker.hints().push(hint, prefix);
}

void record_erased(WorkerContext& worker, const RecordHead* head, std::span<const std::byte> key) {
  const TreePage* page = tree_page(page_of(head));
  const size_t consumed = size_t{page->header.layer} * 8;
  push_tombstone_hint(worker, page, key.first(std::min(consumed, key.size())),
                      slice_of(key.subspan(std::min(consumed, key.size()))));
}

namespace {

/// Removes the tombstones of the page that the hint names. See `maintain`. Returns whether it has
/// queued the hint again, because tombstones are left.
bool remove_tombstones(WorkerContext& worker, StorageControl& storage, const Hint& hint,
                       std::span<const std::byte> prefix) {
  Link root;
  if (!find_layer(worker, storage, prefix, root)) return false;
  BorderView view = find_border(worker, storage, root, hint.slice);
  if (view.page == nullptr) return false;
  const uint32_t count = view.version.count();
  const PageContent content = content_of(worker, view.page, view.version);
  // The page of an empty layer has no snapshot page, so it cannot be evicted. It would keep this
  // page and all pages above in the pool, even if this page has many other records.
  const bool frees_page = content.has_empty_layer && !fault::keep_empty_layers;
  if (count != 0 && content.removable * 2 < count && !frees_page) {
    const bool has_more = (content.removable + content.young) * 2 >= count;
    if (has_more) push_tombstone_hint(worker, view.page, prefix, hint.slice);
    return has_more;
  }
  if (count != 0) {
    if (!compact(worker, view.page, false)) {
      // Another thread has locked the page or a record, or the pool is empty. Queues the hint
      // again, because tombstones that already exist create no further hint.
      push_tombstone_hint(worker, view.page, prefix, hint.slice);
      return true;
    }
    view = find_border(worker, storage, root, hint.slice);  // adopts the successor
    if (view.page == nullptr) return false;
  }
  if (const uint32_t left = view.version.count(); left != 0) {
    // Some tombstones may have been too young. They have created this hint and create no other, so
    // the hint is queued again. A record that still exists creates a hint when it is deleted.
    const PageContent still = content_of(worker, view.page, view.version);
    const bool has_more = (still.removable + still.young) * 2 >= left;
    if (has_more && !fault::forget_young_tombstones) {
      push_tombstone_hint(worker, view.page, prefix, hint.slice);
    }
    return has_more;
  }
  merge_around(worker, storage, root, hint.slice);
  if (!prefix.empty()) {
    // If the whole layer is empty, its slot in the layer above is removable. A hint then names the
    // page with that slot.
    const BorderView above_root = find_border(worker, storage, root, hint.slice);
    if (above_root.page == nullptr || above_root.page->low != 0 ||
        !above_root.page->high_is_end()) {
      return false;
    }
    push_tombstone_hint(worker, root.holder, prefix.first(prefix.size() - 8),
                        slice_of(prefix.subspan(prefix.size() - 8)));
  }
  return false;
}

}  // namespace

void maintain(WorkerContext& worker, const Hint& hint, std::span<const std::byte> prefix) {
  DCHECK(prefix.size() == hint.prefix_bytes);
  StorageControl& storage = worker.view().control->storage(hint.storage_id);
  // The hint may have outlived its storage, whose slot may belong to another storage now (R34).
  if (!is_storage_ready(storage, hint.storage_id)) return;
  const bool is_queued = remove_tombstones(worker, storage, hint, prefix);
  // A pack would copy the tombstones that are left. It is dropped: later splits leave other hints.
  if (hint.is_split && !is_queued) pack_around(worker, storage, hint.slice);
}

void run_hints(WorkerContext& worker) {
  DCHECK(worker.slot().in_commit_epoch.load(std::memory_order_relaxed) == 0);
  worker.enter();
  std::array<std::byte, HintQueue::kMaxPrefixBytes> prefix_bytes;
  const uint32_t budget = std::max(kMinHintsPerTurn, worker.hints().take_arrivals());
  for (uint32_t i = 0; i < budget && worker.hints().is_due(worker.current_epoch()); ++i) {
    std::span<const std::byte> prefix;
    const Hint hint = worker.hints().pop(prefix_bytes, prefix);
    maintain(worker, hint, prefix);
  }
}

}  // namespace atolldb
