#include "engine/mastertree/prefetch.h"

#include <algorithm>
#include <array>

#include "engine/format/slot_search.h"
#include "engine/mastertree/delta.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/snapshot_tree.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Number of keys in progress at once: enough for all cache misses that a core can have at once.
constexpr size_t kBatch = 16;

/// Returns the node's directory if the storage uses it, or null.
const PageDirectory* directory_of(const WorkerContext& worker, const StorageControl& storage) {
  return storage.type == StorageType::hash ? worker.directory() : nullptr;
}

/// Loads the entries of the directory, and then the pages that they name, of all keys at once.
void prefetch_through(const PageDirectory& directory, const WorkerContext& worker,
                      const StorageControl& storage, std::span<const Bytes> keys) {
  DCHECK(keys.size() <= kBatch);
  for (const Bytes key : keys) directory.prefetch_entry(storage.id, slice_of(key));
  for (const Bytes key : keys) {
    TreePage* page = directory.guess(worker.view(), storage.id, slice_of(key));
    if (page != nullptr) prefetch_page_start(page, true);
  }
}

/// Returns the child for the slice, or null if the child is in a snapshot only or the page has
/// moved. A moved page's words are out of date and may lead to recycled pages (R9).
TreePage* child_for(const WorkerContext& worker, TreePage* page, uint64_t slice) {
  const InteriorPage* interior = interior_page(page);
  const PageVersion version = page->header.version();
  if (version.is_moved()) return nullptr;
  const VolatilePointer word =
      interior->children[interior->find(slice, version.count())].load_acquire();
  if (word.is_null()) return nullptr;
  return tree_page(worker.view().resolve(word.thawed()));
}

/// The descent of one key, in steps that do not wait for memory.
struct Way {
  uint64_t slice = 0;
  TreePage* page = nullptr;  // null: the descent was given up
  bool is_border = false;
};

/// Descends to the interior page above the border page. The pages on this path are near the root
/// and therefore in the caches. Returns the border page itself if the worker's memo has it.
Way start_way(WorkerContext& worker, StorageControl& storage, uint64_t slice) {
  if (const PageDirectory* directory = directory_of(worker, storage)) {
    PageVersion version;
    BorderPage* page = directory->find(worker.view(), storage.id, slice, version);
    if (page != nullptr) return {slice, page, true};
  }
  const PageMemo::Entry* known = worker.memo().find(&storage.root, slice);
  if (known != nullptr && known->range.is_known()) return {slice, tree_page(known->page), true};
  const VolatilePointer root = storage.root.load_acquire();
  if (root.is_null()) return {};
  TreePage* page = tree_page(worker.view().resolve(root.thawed()));
  uint32_t level = page->header.level;
  for (; level > 1; --level) {
    page = child_for(worker, page, slice);
    if (page == nullptr) return {};
  }
  return {slice, page, level == 0};
}

/// Stores the page in the worker's memo, so that the look-up does not descend again, and prefetches
/// the records.
void prefetch_slots(WorkerContext& worker, const DualPointer& root, BorderPage* page,
                    uint64_t slice, uint32_t records, uint32_t record_bytes) {
  const PageVersion version = page->header.version();
  if (version.is_moved() || !page->contains(slice)) return;
  worker.memo().remember(&root, slice, &page->header, range_in_memo(page));
  const uint32_t count = version.count();
  const uint32_t first = version.is_ascending() ? page->find_lower_bound(slice, count)
                                                : find_equal(page->slices(), 0, count, slice);
  DCHECK(first <= count);
  const uint32_t end = std::min(count, first + records);
  const auto* start = reinterpret_cast<const std::byte*>(page);
  for (uint32_t slot = first; slot < end; ++slot) {
    const std::byte* record = start + page->offsets()[slot];
    for (uint32_t at = 0; at < record_bytes; at += 64) __builtin_prefetch(record + at);
    __builtin_prefetch(record + record_bytes - 1);
  }
}

/// Returns the snapshot page that a look-up of the key will read, if the key is in a cold range and
/// has no record in the delta tree; otherwise null.
SnapshotPointer cold_page_of(WorkerContext& worker, StorageControl& storage, Bytes key) {
  const Location location = locate(worker, storage, key);
  const MissingPage& missing = location.missing;
  if (!missing || missing.view.snapshot.is_null()) return {};
  if (missing.view.page.has_delta()) {
    const TreeRecord* record = locate(worker, storage, key, delta_link(storage)).record;
    if (record != nullptr && !record->head.load_acquire().is_open()) return {};
  }
  // A pointer in a page of level 1 leads to a border page, which need not be read to know that.
  const bool is_in_page = missing.pointer != &storage.root;
  const PageHeader* holder = is_in_page ? page_of(missing.pointer) : nullptr;
  if (is_in_page && holder->level == 1) return missing.view.snapshot;
  SnapshotPointer border;
  const uint64_t slice = LayerKey(key.subspan(location.key_at)).slice;
  const Status status = name_snapshot_border(worker, missing.view.snapshot, slice, border);
  return status == Status::ok ? border : SnapshotPointer();
}

/// Reads the cold pages of these keys at the same time, so that the transactions that need them do
/// not wait for the device one after the other.
void read_cold_pages(WorkerContext& worker, StorageControl& storage, std::span<const Bytes> keys,
                     std::span<const Way> ways) {
  if (keys.size() < 2) return;  // a single page is left to the look-up
  ColdBatch batch(worker);
  if (!batch.is_wanted()) return;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (ways[i].page == nullptr) batch.add(cold_page_of(worker, storage, keys[i]));
  }
}

}  // namespace

void prefetch_records(WorkerContext& worker, StorageControl& storage, std::span<const Bytes> keys,
                      uint32_t records, ColdPages cold_pages) {
  const uint32_t record_bytes = TreeRecord::bytes_with(8, storage.payload_bytes);
  std::array<Way, kBatch> ways;
  for (; !keys.empty(); keys = keys.subspan(std::min(kBatch, keys.size()))) {
    const size_t count = std::min(kBatch, keys.size());
    if (const PageDirectory* directory = directory_of(worker, storage)) {
      prefetch_through(*directory, worker, storage, keys.first(count));
    }
    for (size_t i = 0; i < count; ++i) {
      ways[i] = start_way(worker, storage, slice_of(keys[i]));
      if (ways[i].page != nullptr) prefetch_page_start(ways[i].page, ways[i].is_border);
    }
    for (size_t i = 0; i < count; ++i) {
      if (ways[i].page == nullptr || ways[i].is_border) continue;
      const uint64_t* stride = interior_page(ways[i].page)->stride_for(ways[i].slice);
      __builtin_prefetch(stride);
      __builtin_prefetch(stride + kSearchStride / 2);
    }
    for (size_t i = 0; i < count; ++i) {
      Way& way = ways[i];
      if (way.page == nullptr || way.is_border) continue;
      way.page = child_for(worker, way.page, way.slice);
      if (way.page == nullptr) continue;
      prefetch_page_start(way.page, true);
      if (records == 0) worker.memo().remember(&storage.root, way.slice, &way.page->header, {});
    }
    for (size_t i = 0; i < count; ++i) {
      const Way& way = ways[i];
      if (way.page == nullptr || records == 0) continue;
      prefetch_slots(worker, storage.root, border_page(way.page), way.slice, records, record_bytes);
    }
    if (cold_pages == ColdPages::skip) continue;
    read_cold_pages(worker, storage, keys.first(count), std::span(ways).first(count));
  }
}

void prefetch_border(WorkerContext& worker, StorageControl& storage, uint64_t slice) {
  Way way = start_way(worker, storage, slice);
  if (way.page != nullptr && !way.is_border) {
    way.page = child_for(worker, way.page, slice);
    if (way.page != nullptr) worker.memo().remember(&storage.root, slice, &way.page->header, {});
  }
  if (way.page != nullptr) prefetch_scanned_page(&way.page->header);
}

void prefetch_ahead(Transaction& txn, const MasterTree& tree, std::span<const Bytes> keys,
                    uint32_t records) {
  if (tree.handle().check_volatile(txn, 0) != Status::ok) return;
  prefetch_records(txn.worker(), tree.storage(), keys, records, ColdPages::skip);
}

void add_cold(Transaction& txn, const MasterTree& tree, Bytes key, ColdBatch& batch) {
  if (!batch.is_wanted() || tree.handle().check_volatile(txn, 0) != Status::ok) return;
  DCHECK(key.size() <= kMaxTreeKeyBytes);
  batch.add(cold_page_of(txn.worker(), tree.storage(), key));
}

}  // namespace atolldb
