#include "engine/transaction/dual_pointer.h"

#include <cstddef>
#include <cstring>

#include "engine/format/array_page.h"
#include "engine/format/tree_page.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Copies a page of the cache, except its name. Makes its volatile words null: in the cache they
/// hold hints, which other readers write. A thread with an old hint to the page may load its
/// version and its name meanwhile (R86).
void copy_page(PageHeader* to, const PageHeader* from) {
  const DualPointer* links = nullptr;
  if (from->type == PageType::array_interior) {
    links = reinterpret_cast<const ArrayInterior*>(from)->children;
  } else if (from->type == PageType::mastertree_interior) {
    links = reinterpret_cast<const InteriorPage*>(from)->children;
  }
  const size_t links_at = links == nullptr
                              ? kPageBytes
                              : static_cast<size_t>(reinterpret_cast<const std::byte*>(links) -
                                                    reinterpret_cast<const std::byte*>(from));
  to->version_word.store(from->version_word.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
  constexpr size_t kRest = offsetof(PageHeader, max_removed_vid);
  std::memcpy(reinterpret_cast<std::byte*>(to) + kRest,
              reinterpret_cast<const std::byte*>(from) + kRest, links_at - kRest);
  auto* to_links = reinterpret_cast<DualPointer*>(reinterpret_cast<std::byte*>(to) + links_at);
  for (size_t i = 0; i < (kPageBytes - links_at) / sizeof(DualPointer); ++i) {
    to_links[i].volatile_word.store(0, std::memory_order_relaxed);
    to_links[i].snapshot_word.store(links[i].snapshot_word.load(std::memory_order_relaxed),
                                    std::memory_order_relaxed);
  }
}

}  // namespace

Status copy_up(Transaction& txn, DualPointer& pointer, const DualPointer::View& view) {
  DCHECK(view.page.is_null() && !view.page.is_frozen() && !view.snapshot.is_null());
  if (txn.depends_on(&pointer)) return Status::pointer_installed;
  WorkerContext& worker = txn.worker();
  PageHeader* page = worker.pages().take();
  if (page == nullptr) return Status::volatile_pool_exhausted;
  const PageHeader* from = nullptr;
  const Status status = worker.snapshot_page(view.snapshot, from);
  if (status != Status::ok) {
    worker.leave_snapshots();
    worker.pages().give_back(page);
    return status;
  }
  // Also copies the newest removed version of the snapshot page: records that the snapshot elided
  // have VIDs of its epoch or earlier (R43).
  copy_page(page, from);
  DCHECK(from->type != PageType::sequential);
  worker.leave_snapshots();
  page->is_snapshot = 0;
  page->check = 0;
  // If install_page fails, another thread has changed the word. The caller loads the word again.
  uint64_t word = view.page.word();
  const uint32_t storage_id = page->storage_id;
  if (install_page(pointer.volatile_word, word, page->self)) {
    worker.count_copied_page(storage_id);
  } else {
    worker.pages().give_back(page);
  }
  return Status::ok;
}

}  // namespace atolldb
