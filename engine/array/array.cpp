#include "engine/array/array.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "engine/format/array_page.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/transaction/cold_batch.h"
#include "engine/transaction/dual_pointer.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

namespace {

/// Installs an empty page over the null word `seen` of `pointer`, by compare-and-swap from exactly
/// that word (R1). Returns pointer_installed if the transaction depends on the null word (R5), or
/// volatile_pool_exhausted.
Status add_page(Transaction& txn, DualPointer& pointer, VolatilePointer seen, PageType type,
                uint8_t level, uint32_t storage_id) {
  DCHECK((level == 0) == (type == PageType::array_leaf));
  if (txn.depends_on(&pointer)) return Status::pointer_installed;
  WorkerContext& worker = txn.worker();
  PageHeader* page = worker.pages().take();
  if (page == nullptr) return Status::volatile_pool_exhausted;
  std::memset(reinterpret_cast<std::byte*>(page) + sizeof(PageHeader), 0,
              kPageBytes - sizeof(PageHeader));
  page->type = type;
  page->level = level;
  page->storage_id = storage_id;
  // If the installation fails, another thread has changed the word. The caller loads it again.
  uint64_t word = seen.word();
  if (!install_page(pointer.volatile_word, word, page->self)) worker.pages().give_back(page);
  return Status::ok;
}

/// Returns a storage that is never ready: operations on it return storage_not_found.
StorageControl& no_storage() {
  static StorageControl storage{};
  return storage;
}

/// Resolves pointers of a batch of look-ups. Counts the accesses together at the end of the batch,
/// so that the counters in memory change once.
class PageCounter {
 public:
  explicit PageCounter(WorkerContext& worker) : worker_(worker), node_(worker.node()) {}
  PageCounter(const PageCounter&) = delete;
  PageCounter& operator=(const PageCounter&) = delete;
  ~PageCounter() {
    DCHECK(remote_ <= all_);
    worker_.metrics().local_accesses.add(all_ - remote_);
    worker_.metrics().remote_accesses.add(remote_);
  }

  PageHeader* resolve(VolatilePointer pointer) {
    ++all_;
    remote_ += pointer.node() != node_ ? 1 : 0;
    return worker_.view().resolve(pointer);
  }

 private:
  WorkerContext& worker_;
  const uint32_t node_;
  uint64_t all_ = 0;
  uint64_t remote_ = 0;
};

/// Resolves pointers for prefetches, which are no accesses.
class UncountedPages {
 public:
  explicit UncountedPages(const WorkerContext& worker) : view_(worker.view()) {}
  PageHeader* resolve(VolatilePointer pointer) const { return view_.resolve(pointer); }

 private:
  const ClusterView& view_;
};

Bytes8 key_of(uint64_t index) {
  Bytes8 key;
  std::memcpy(key.data(), &index, sizeof(index));
  return key;
}

}  // namespace

Array::Array(StorageControl& storage)
    : storage_(storage),
      record_count_(storage.record_count),
      payload_bytes_(storage.payload_bytes),
      record_bytes_(0),
      records_per_leaf_(0),
      levels_(0),
      leaf_reciprocal_(0) {
  // The caller may have looked the storage up outside a transaction. Then no begin epoch delays a
  // drop of the storage, and its slot may belong to another storage by now (R34). If so, the handle
  // becomes unusable.
  const bool is_array = storage.type == StorageType::array && storage.id == storage_.id();
  if (!is_array || record_count_ > kMaxRecords || payload_bytes_ > kMaxPayloadBytes) {
    storage_ = StorageHandle(no_storage());
    record_count_ = kMaxRecords;
    payload_bytes_ = kMaxPayloadBytes;
  }
  const ArrayShape shape(record_count_, payload_bytes_);
  record_bytes_ = shape.record_bytes;
  records_per_leaf_ = shape.records_per_leaf;
  levels_ = shape.levels;
  // leaf_of is exact if the product of index and rounding error is less than 2^64. The rounding
  // error of the reciprocal is at most records_per_leaf_. So the two checks below suffice.
  static_assert(kMaxRecords <= uint64_t{1} << 40);
  CHECK(records_per_leaf_ >= 2 && records_per_leaf_ < 1u << 24);
  leaf_reciprocal_ = ~uint64_t{0} / records_per_leaf_ + 1;
}

inline uint64_t Array::leaf_of(uint64_t index) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{index} * leaf_reciprocal_) >> 64);
}

/// Returns the volatile root page, or null if there is none or if the root is a leaf.
template <typename Pages>
inline ArrayInterior* Array::top_page(Pages& pages) const {
  const VolatilePointer word = storage_.control().root.load_acquire();
  if (levels_ == 1 || word.is_null()) return nullptr;
  PageHeader* page = pages.resolve(word);
  DCHECK(page->type == PageType::array_interior && page->level == levels_ - 1);
  return reinterpret_cast<ArrayInterior*>(page);
}

/// Fast path of nearly all look-ups. It finds the place if all pages above the leaf are volatile
/// pages and there are at most three levels.
template <typename Pages>
inline Array::Place Array::place_of(Pages& pages, const ArrayInterior* top, uint64_t index) const {
  const uint64_t leaf = leaf_of(index);
  const auto slot = static_cast<uint32_t>(index - leaf * records_per_leaf_);
  if (index >= record_count_) [[unlikely]]
    return {nullptr, 0};
  if (levels_ == 1) return {&storage_.control().root, slot};
  if (top == nullptr || levels_ > 3) [[unlikely]]
    return {nullptr, slot};
  DCHECK(slot < records_per_leaf_);
  if (levels_ == 2) {
    DCHECK(leaf < kArrayFanout);
    return {&top->children[leaf], slot};
  }
  const uint64_t upper = leaf / kArrayFanout;
  DCHECK(upper < kArrayFanout);
  const VolatilePointer word = top->children[upper].load_acquire();
  if (word.is_null()) [[unlikely]]
    return {nullptr, slot};
  const auto* page = reinterpret_cast<const ArrayInterior*>(pages.resolve(word));
  DCHECK(page->header.type == PageType::array_interior && page->header.level == 1);
  return {&page->children[leaf - upper * kArrayFanout], slot};
}

inline RecordRef Array::ref_of(VolatilePointer leaf, PageHeader* page, uint32_t slot,
                               uint64_t index) const {
  DCHECK(page->type == PageType::array_leaf && page->level == 0);
  DCHECK(page->storage_id == storage_.id() && slot < records_per_leaf_);
  RecordRef ref;
  ref.record = reinterpret_cast<ArrayLeaf*>(page)->record(slot, record_bytes_);
  ref.payload_at = sizeof(RecordHead);
  ref.payload_bytes = static_cast<uint16_t>(payload_bytes_);
  ref.storage_id = storage_.id();
  ref.place = UniversalName::make(leaf, sizeof(ArrayPage) + uint64_t{slot} * record_bytes_).word();
  ref.identity = identity_of(storage_.id(), index);
  return ref;
}

inline RecordRef Array::resolve_and_count(WorkerContext& worker, VolatilePointer leaf,
                                          uint32_t slot, uint64_t index) const {
  PageHeader* page = worker.resolve(leaf);
  worker.count_use(page);
  return ref_of(leaf, page, slot, index);
}

/// REQUIRES: `create` is false if the transaction reads a snapshot.
Status Array::find(Transaction& txn, uint64_t index, bool create, RecordRef& ref) const {
  const Status status = storage_.check_volatile(txn);
  if (status != Status::ok) [[unlikely]]
    return txn.snapshot() == nullptr ? status : find_in_snapshot(txn, index, ref);
  const Place place = place_of(txn.worker(), top_page(txn.worker()), index);
  if (place.leaf != nullptr) [[likely]] {
    const VolatilePointer word = place.leaf->load_acquire();
    if (!word.is_null()) [[likely]] {
      ref = resolve_and_count(txn.worker(), word, place.slot, index);
      return Status::ok;
    }
  }
  return index < record_count_ ? find_by_descent(txn, index, create, ref) : Status::out_of_range;
}

/// Computes which children lead to the record. Returns its slot in the leaf.
uint32_t Array::path_to(uint64_t index, Children& child) const {
  DCHECK(index < record_count_ && levels_ <= kMaxLevels);
  uint64_t page_number = leaf_of(index);
  const auto slot = static_cast<uint32_t>(index - page_number * records_per_leaf_);
  for (uint32_t level = 1; level < levels_; ++level, page_number /= kArrayFanout) {
    child[level] = page_number % kArrayFanout;
  }
  DCHECK(page_number == 0);  // the root covers every record
  return slot;
}

Status Array::find_by_descent(Transaction& txn, uint64_t index, bool create, RecordRef& ref) const {
  Children child;
  const uint32_t slot = path_to(index, child);
  for (uint32_t turns = 0;;) {
    bool is_frozen = false;
    const Status status = descend_once(txn, index, child, slot, create, ref, is_frozen);
    if (!is_frozen) return status;
    // The word is frozen, because the page that holds it is being dropped. Retries until the page
    // is dropped or the drop is given up (R3).
    reach(SyncPoint::awaiting_move);
    if (spin_or_yield(turns) && txn.worker().cluster_failed()) return Status::cluster_failed;
  }
}

/// Returns true if this transaction plans to write a record that has no volatile page now. The page
/// was dropped after the write was planned, so a read would miss the write (R14).
bool Array::has_lost_write(Transaction& txn, uint64_t index) const {
  if (txn.plans_no_write() || fault::cold_hides_own_writes) return false;
  RecordRef ref;
  ref.storage_id = storage_.id();
  ref.identity = identity_of(storage_.id(), index);
  return txn.find_write(ref) != nullptr;
}

/// Descends from the root to the leaf, or to the end of the volatile pages. Sets `is_frozen` if
/// there is a frozen null word on the path. Nothing is registered then, and the caller must retry.
Status Array::descend_once(Transaction& txn, uint64_t index, const Children& child, uint32_t slot,
                           bool create, RecordRef& ref, bool& is_frozen) const {
  DualPointer* pointer = &storage_.control().root;
  for (uint32_t level = levels_ - 1;; --level) {
    DualPointer::View view = load_both(*pointer);
    while (view.page.is_null()) {
      is_frozen = is_frozen_null(view.page);
      if (is_frozen) return Status::ok;
      if (!create && !txn.installs_on_read()) {
        if (has_lost_write(txn, index)) return txn.miss_own_write();
        ref = RecordRef{};
        ref.payload_bytes = static_cast<uint16_t>(payload_bytes_);
        DCHECK(txn.is_serializable());
        const Status registered = txn.register_pointer(pointer, view.page.word());
        if (registered != Status::ok || view.snapshot.is_null()) return registered;
        return find_cold(txn, view.snapshot, level, child, slot, ref);
      }
      const PageType type = level == 0 ? PageType::array_leaf : PageType::array_interior;
      const Status installed =
          view.snapshot.is_null()
              ? add_page(txn, *pointer, view.page, type, static_cast<uint8_t>(level), storage_.id())
              : copy_up(txn, *pointer, view);
      if (installed != Status::ok) return installed;
      view = load_both(*pointer);
    }
    if (level == 0) {
      ref = resolve_and_count(txn.worker(), view.page, slot, index);
      return Status::ok;
    }
    PageHeader* page = txn.worker().resolve(view.page);
    DCHECK(page->type == PageType::array_interior && page->level == level);
    pointer = &reinterpret_cast<ArrayInterior*>(page)->children[child[level]];
  }
}

/// Descends from the snapshot page `pointer`, which has level `level`, to the leaf. Sets `pointer`
/// to the leaf, or to null if there is no leaf.
Status Array::descend_in_snapshot(WorkerContext& worker, uint32_t level, const Children& child,
                                  SnapshotPointer& pointer) {
  DCHECK(!pointer.is_null());
  const PageHeader* page = nullptr;
  Status status = worker.snapshot_page(pointer, page);
  for (; level != 0 && status == Status::ok; --level) {
    // Only the snapshot cache writes into this immutable page: it stores a hint in the link.
    auto* interior = reinterpret_cast<ArrayInterior*>(const_cast<PageHeader*>(page));
    DualPointer& link = interior->children[child[level]];
    pointer = SnapshotPointer(link.snapshot_word.load(std::memory_order_relaxed));
    if (pointer.is_null()) break;
    status = worker.snapshot_child(link, page);
  }
  return status;
}

/// Descends from the snapshot page `pointer`, which has level `level`, to the leaf. Stores the
/// place of the record in `ref`. Leaves `ref.place` unchanged if there is no leaf: the record was
/// never written.
Status Array::find_cold(Transaction& txn, SnapshotPointer pointer, uint32_t level,
                        const Children& child, uint32_t slot, RecordRef& ref) const {
  if (level != 0) {
    const Status status = descend_in_snapshot(txn.worker(), level, child, pointer);
    txn.worker().leave_snapshots();
    if (status != Status::ok || pointer.is_null()) return status;
  }
  DCHECK(!pointer.is_null() && slot < records_per_leaf_);
  ref.place = pointer.word();
  ref.payload_at =
      static_cast<uint16_t>(sizeof(ArrayPage) + slot * record_bytes_ + sizeof(RecordHead));
  return Status::ok;
}

Status Array::find_in_snapshot(Transaction& txn, uint64_t index, RecordRef& ref) const {
  const Status status = storage_.check_snapshot(txn, false);
  if (status != Status::ok) return status;
  DCHECK(txn.snapshot() != nullptr);
  if (index >= record_count_) return Status::out_of_range;
  ref = RecordRef{};
  ref.payload_bytes = static_cast<uint16_t>(payload_bytes_);
  // A look-up of own writes compares these two fields.
  ref.storage_id = storage_.id();
  ref.identity = identity_of(storage_.id(), index);
  const SnapshotPointer root = txn.snapshot()->root_of(storage_.id());
  if (root.is_null()) return Status::ok;
  Children child;
  const uint32_t slot = path_to(index, child);
  return find_cold(txn, root, levels_ - 1, child, slot, ref);
}

Status Array::read_whole(Transaction& txn, uint64_t index, Whole& record) const {
  const Status status = storage_.check_snapshot(txn, true, 0);
  return status == Status::ok ? get(txn, index, record.data()) : status;
}

/// Plans a write of the whole record, for a transaction that reads a snapshot.
Status Array::write_whole(Transaction& txn, uint64_t index, const Whole& record) const {
  RecordRef ref;
  const Status status = find_by_descent(txn, index, true, ref);
  if (status != Status::ok) return status;
  DCHECK(ref.record != nullptr);
  return txn.write_update(ref, key_of(index), 0, std::span(record).first(payload_bytes_));
}

/// Reads the record from the pending write of this transaction, which reads a snapshot. Returns
/// not_found if the transaction has not written the record.
Status Array::get_own(Transaction& txn, const RecordRef& ref, uint32_t offset, uint32_t count,
                      void* out) {
  const WriteEntry* own = txn.own_write(ref);
  if (own == nullptr) return Status::not_found;
  // Writes of a transaction that reads a snapshot hold whole records.
  DCHECK(txn.log_of(*own).payload_offset == 0);
  DCHECK(offset + uint64_t{count} <= txn.log_of(*own).payload_bytes);
  std::memcpy(out, txn.log_of(*own).payload() + offset, count);
  return Status::ok;
}

Status Array::get(Transaction& txn, uint64_t index, void* out, Vid& seen) const {
  RecordRef ref;
  seen = {};
  const Status status = find(txn, index, false, ref);
  if (status != Status::ok) return status;
  return ref.record != nullptr ? txn.read_in_place(ref, 0, payload_bytes_, out, seen)
                               : get_cold(txn, ref, 0, payload_bytes_, out, &seen);
}

Status Array::get_cold(Transaction& txn, const RecordRef& ref, uint32_t offset, uint32_t count,
                       void* out, Vid* seen) {
  const bool is_own =
      txn.snapshot() != nullptr && get_own(txn, ref, offset, count, out) == Status::ok;
  // If there is an own write, only a caller that passes `seen` needs the page. The page may be
  // unreadable.
  if (is_own && seen == nullptr) return Status::ok;
  if (ref.snapshot().is_null()) {
    if (!is_own) std::memset(out, 0, count);
    return Status::ok;
  }
  const PageHeader* page = nullptr;
  const Status status = txn.worker().snapshot_page(ref.snapshot(), page);
  if (status == Status::ok) {
    // The page is immutable. In a serializable transaction the pointer set covers the read.
    const auto* payload = reinterpret_cast<const std::byte*>(page) + ref.payload_at;
    if (seen != nullptr) *seen = reinterpret_cast<const RecordHead*>(payload)[-1].load_acquire();
    if (!is_own) copy_bytes(out, payload + offset, count);
  }
  txn.worker().leave_snapshots();
  return status;
}

Status Array::get(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                  void* out) const {
  RecordRef ref;
  const Status status = find(txn, index, false, ref);
  return status == Status::ok ? get(txn, ref, offset, count, out) : status;
}

Status Array::get_for_update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                             void* out, RecordRef& ref) const {
  if (offset + uint64_t{count} > payload_bytes_) return Status::out_of_range;
  if (!txn.is_serializable()) [[unlikely]] {
    const Status writes = storage_.check_snapshot(txn, true, 0);
    const Status found = writes == Status::ok ? find(txn, index, false, ref) : writes;
    return found == Status::ok ? get(txn, ref, offset, count, out) : found;
  }
  const Status status = find(txn, index, true, ref);
  if (status != Status::ok) return status;
  DCHECK(ref.record != nullptr);
  return txn.read_existing(ref, offset, count, out);
}

/// Calls `use(i, leaf, slot)` for each index. `leaf`: the word that leads to the record's leaf, or
/// null if the fast path does not find it. `slot`: the record's slot in that leaf. Stops at a
/// status other than ok, and returns it. The cache misses of a batch overlap.
template <typename Pages, typename Use>
inline Status Array::for_each_place(Pages& pages, std::span<const uint64_t> indexes,
                                    Use&& use) const {
  const ArrayInterior* top = top_page(pages);
  std::array<Place, kBatch> places;
  for (size_t first = 0; first < indexes.size(); first += kBatch) {
    const size_t count = std::min(kBatch, indexes.size() - first);
    for (size_t i = 0; i < count; ++i) {
      places[i] = place_of(pages, top, indexes[first + i]);
      __builtin_prefetch(places[i].leaf);
    }
    for (size_t i = 0; i < count; ++i) {
      const DualPointer* leaf = places[i].leaf;
      const VolatilePointer word = leaf == nullptr ? VolatilePointer() : leaf->load_acquire();
      const Status status = use(first + i, word, places[i].slot);
      if (status != Status::ok) return status;
    }
  }
  return Status::ok;
}

Status Array::find_many(Transaction& txn, std::span<const uint64_t> indexes,
                        std::span<RecordRef> refs, bool create) const {
  if (refs.size() < indexes.size()) return Status::invalid_argument;
  const Status checked = storage_.check_volatile(txn, indexes.size());
  if (checked != Status::ok) [[unlikely]] {
    if (txn.snapshot() == nullptr) return checked;
    const Status usable = storage_.check_snapshot(txn, create, 0);
    for (size_t i = 0; i < indexes.size() && usable == Status::ok; ++i) {
      const Status status = find_in_snapshot(txn, indexes[i], refs[i]);
      if (status == Status::out_of_range) refs[i] = RecordRef{};
      if (status != Status::ok && status != Status::out_of_range) return status;
    }
    return usable;
  }
  WorkerContext& worker = txn.worker();
  PageCounter pages(worker);
  size_t searched = 0;  // the missing pages of the records before this one were read
  return for_each_place(pages, indexes, [&](size_t i, VolatilePointer leaf, uint32_t slot) {
    const uint64_t index = indexes[i];
    if (!leaf.is_null()) [[likely]] {
      PageHeader* page = pages.resolve(leaf);
      worker.count_use(page);
      refs[i] = ref_of(leaf, page, slot, index);
    } else if (index >= record_count_) {
      refs[i] = RecordRef{};
    } else {
      if (i >= searched) searched = i + read_cold(txn, indexes.subspan(i));
      return find_by_descent(txn, index, create, refs[i]);
    }
    return Status::ok;
  });
}

/// Reads the missing snapshot pages of the first records at the same time. Returns the number of
/// these records.
size_t Array::read_cold(Transaction& txn, std::span<const uint64_t> indexes) const {
  const std::span<const uint64_t> first = indexes.first(std::min(kBatch, indexes.size()));
  static_assert(kBatch <= kPagesPerRead);
  DCHECK(!first.empty());
  if (first.size() > 1) {
    ColdBatch batch(txn.worker());
    add_cold(txn, first, batch);
  }
  return first.size();
}

void Array::add_cold(Transaction& txn, std::span<const uint64_t> indexes, ColdBatch& batch) const {
  if (!batch.is_wanted()) return;
  for (const uint64_t index : indexes) {
    if (index < record_count_) batch.add(cold_leaf(txn, leaf_of(index)));
  }
}

SnapshotPointer Array::cold_leaf(Transaction& txn, uint64_t leaf) const {
  Children child;
  path_to(leaf * records_per_leaf_, child);
  uint32_t level = levels_ - 1;
  SnapshotPointer page;
  if (storage_.check_volatile(txn, 0) == Status::ok) {
    DualPointer::View view = load_both(storage_.control().root);
    for (; !view.page.is_null(); --level) {
      if (level == 0) return {};
      const auto* above =
          reinterpret_cast<const ArrayInterior*>(txn.worker().view().resolve(view.page));
      DCHECK(above->header.type == PageType::array_interior && above->header.level == level);
      view = load_both(above->children[child[level]]);
    }
    page = view.snapshot;
  } else if (txn.snapshot() != nullptr && storage_.check_snapshot(txn, false, 0) == Status::ok) {
    page = txn.snapshot()->root_of(storage_.id());
  }
  if (page.is_null() || level == 0) return page;
  const PageHeader* header = nullptr;
  for (; level != 0 && !page.is_null(); --level) {
    // Uses cached pages only. The look-up that needs the leaf reads the others, and reports those
    // that cannot be read.
    header = txn.worker().find_snapshot_page(page);
    const auto* above = reinterpret_cast<const ArrayInterior*>(header);
    page = header != nullptr ? SnapshotPointer(above->children[child[level]].snapshot_word.load(
                                   std::memory_order_relaxed))
                             : SnapshotPointer();
  }
  txn.worker().leave_snapshots();
  return page;
}

void Array::prefetch(Transaction& txn, std::span<const uint64_t> indexes) const {
  prefetch(txn, indexes, 0, payload_bytes_);
  if (indexes.size() < 2) return;  // a single page is left to the look-up
  ColdBatch batch(txn.worker());
  add_cold(txn, indexes, batch);
}

void Array::prefetch(Transaction& txn, std::span<const uint64_t> indexes, uint32_t offset,
                     uint32_t count) const {
  if (storage_.check_volatile(txn, 0) != Status::ok) return;
  DCHECK(offset + uint64_t{count} <= payload_bytes_);
  UncountedPages pages(txn.worker());
  static_cast<void>(
      for_each_place(pages, indexes, [&](size_t i, VolatilePointer leaf, uint32_t slot) {
        if (!leaf.is_null()) {
          prefetch(ref_of(leaf, pages.resolve(leaf), slot, indexes[i]), offset, count);
        }
        return Status::ok;
      }));
}

void Array::prefetch(const RecordRef& ref, uint32_t offset, uint32_t count) {
  if (ref.record == nullptr) return;
  const auto head = reinterpret_cast<uintptr_t>(ref.record);
  __builtin_prefetch(ref.record);
  const uintptr_t first = (head + ref.payload_at + offset) & ~uintptr_t{63};
  const uintptr_t end = head + ref.payload_at + offset + count;
  for (uintptr_t line = first; line < end; line += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(line));
  }
}

Status Array::get_many(Transaction& txn, std::span<const uint64_t> indexes, void* out) const {
  auto* to = static_cast<std::byte*>(out);
  std::array<RecordRef, kBatch> refs;
  for (size_t first = 0; first < indexes.size(); first += kBatch) {
    const size_t count = std::min<size_t>(kBatch, indexes.size() - first);
    const Status found = find_many(txn, indexes.subspan(first, count), refs);
    if (found != Status::ok) return found;
    for (size_t i = 0; i < count; ++i) prefetch(refs[i], 0, payload_bytes_);
    for (size_t i = 0; i < count; ++i, to += payload_bytes_) {
      const Status status = get(txn, refs[i], 0, payload_bytes_, to);
      if (status != Status::ok) return status;
    }
  }
  return Status::ok;
}

Status Array::update(Transaction& txn, uint64_t index, uint32_t offset, uint32_t count,
                     const void* bytes) const {
  if (!txn.is_serializable()) [[unlikely]] {
    Whole record;
    const Status status = read_whole(txn, index, record);
    if (status != Status::ok) return status;
    if (offset + uint64_t{count} > payload_bytes_) return Status::out_of_range;
    if (count != 0) std::memcpy(record.data() + offset, bytes, count);
    return write_whole(txn, index, record);
  }
  RecordRef ref;
  const Status status = find(txn, index, true, ref);
  if (status != Status::ok) return status;
  return update(txn, ref, index, offset, count, bytes);
}

Status Array::update(Transaction& txn, const RecordRef& ref, uint64_t index, uint32_t offset,
                     uint32_t count, const void* bytes) const {
  if (offset + uint64_t{count} > ref.payload_bytes) return Status::out_of_range;
  // The ref names no volatile record: it was found for reading only, or the transaction reads a
  // snapshot.
  if (ref.record == nullptr) {
    return txn.snapshot() == nullptr ? Status::invalid_argument
                                     : update(txn, index, offset, count, bytes);
  }
  const Status status = txn.check();
  if (status != Status::ok) return status;
  return txn.write_update(ref, key_of(index), offset,
                          {static_cast<const std::byte*>(bytes), count});
}

Status Array::increment(Transaction& txn, uint64_t index, uint32_t offset, IncrementType type,
                        const void* delta) const {
  if (offset + uint64_t{increment_bytes(type)} > payload_bytes_) return Status::out_of_range;
  if (!txn.is_serializable()) [[unlikely]] {
    if (increment_bytes(type) == 0) return Status::invalid_argument;
    Whole record;
    const Status status = read_whole(txn, index, record);
    if (status != Status::ok) return status;
    add_increment(type, record.data() + offset, delta, record.data() + offset);
    return write_whole(txn, index, record);
  }
  RecordRef ref;
  const Status status = find(txn, index, true, ref);
  if (status != Status::ok) return status;
  DCHECK(ref.record != nullptr);
  return txn.write_increment(ref, key_of(index), offset, type, delta);
}

ArrayCursor::ArrayCursor(const Array& array, Transaction& txn, uint64_t first, uint64_t last,
                         bool forward)
    : array_(array), txn_(&txn), next_(0), left_(0), forward_(forward) {
  if (array.record_count() == 0 || first > last) return;
  last = std::min(last, array.record_count() - 1);
  if (first > last) return;
  next_ = forward ? first : last;
  left_ = last - first + 1;
}

/// Called when the scan reaches a leaf. If the leaf is in a snapshot page that is missing in the
/// cache, reads that page together with the next ones. A hint, which registers nothing: a scan may
/// end before it reaches these leaves.
void ArrayCursor::enter_leaf() {
  DCHECK(left_ != 0 && next_ < array_.record_count());
  const uint64_t leaf = array_.leaf_of(next_);
  const uint64_t slot = next_ - leaf * array_.records_per_leaf_;
  left_in_leaf_ = forward_ ? array_.records_per_leaf_ - slot : slot + 1;
  WorkerContext& worker = txn_->worker();
  std::array<SnapshotPointer, kPagesPerRead> pages{array_.cold_leaf(*txn_, leaf)};
  if (pages[0].is_null()) return;
  const uint32_t distance = scan_distance(cold_leaves_++);
  const bool is_cached = worker.find_snapshot_page(pages[0]) != nullptr;
  worker.leave_snapshots();
  if (is_cached) return;
  const uint64_t last = array_.leaf_of(forward_ ? next_ + (left_ - 1) : next_ - (left_ - 1));
  const uint64_t within = forward_ ? last - leaf : leaf - last;
  const uint64_t wanted = within < kPagesPerRead ? within : distance;
  DCHECK(wanted < kPagesPerRead);
  uint32_t count = 1;
  for (uint64_t i = 1; i <= wanted; ++i) {
    const SnapshotPointer page = array_.cold_leaf(*txn_, forward_ ? leaf + i : leaf - i);
    if (!page.is_null()) pages[count++] = page;
  }
  if (count == 1) return;
  const uint32_t read = worker.read_snapshot_pages(std::span(pages).first(count));
  if (read > 1) worker.metrics().scan_pages_ahead.add(read - 1);
}

Status ArrayCursor::next(uint64_t& index, void* out) {
  if (left_ == 0) return Status::end_of_scan;
  if (left_in_leaf_ == 0) [[unlikely]]
    enter_leaf();
  const Status status = array_.get(*txn_, next_, out);
  if (status != Status::ok) return status;
  DCHECK(next_ < array_.record_count());
  index = next_;
  next_ = forward_ ? next_ + 1 : next_ - 1;
  --left_;
  --left_in_leaf_;
  return Status::ok;
}

namespace {

/// Array records are never moved. A record that reads as relocated was evicted with its page (R8).
bool track_moved_in_array(WorkerContext& /*worker*/, RecordHead*& /*record*/,
                          uint16_t& /*payload_at*/) {
  return false;
}

/// Does nothing, because arrays have no deletes.
void record_erased_in_array(WorkerContext& /*worker*/, const RecordHead* /*record*/,
                            std::span<const std::byte> /*key*/) {}

}  // namespace

constinit const StorageOps kArrayOps = {track_moved_in_array, record_erased_in_array};

}  // namespace atolldb
