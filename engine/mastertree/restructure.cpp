#include "engine/mastertree/restructure.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/pack.h"
#include "engine/mastertree/page_lock.h"
#include "engine/transaction/covered.h"
#include "shared/base/check.h"

namespace atolldb {

uint64_t removable_epoch(const WorkerContext& worker) {
  if (fault::elide_young_tombstones) return worker.current_epoch();
  const EpochBlock& epochs = worker.view().control->epochs;
  const uint64_t settled = epochs.settled.load(std::memory_order_acquire);
  if (fault::ignore_oldest_begin) return settled;
  const uint64_t oldest = epochs.oldest_begin.load(std::memory_order_acquire);
  return std::min(settled, oldest == 0 ? 0 : oldest - 1);
}

BorderPage* only_page_below(WorkerContext& worker, TreeRecord* record) {
  const VolatilePointer word = record->next_layer()->load_acquire();
  if (word.is_null()) return nullptr;  // the layer is in a snapshot only
  TreePage* root = tree_page(worker.view().resolve(word.thawed()));
  const bool is_single = root->is_border() && !root->header.version().is_moved();
  return is_single ? border_page(root) : nullptr;
}

TreeRecord* lone_record_of(BorderPage* root) {
  const PageVersion version = root->header.version();
  DCHECK(root->low == 0 && root->high_is_end());
  if (version.is_moved() || version.count() != 1) return nullptr;
  TreeRecord* lone = root->record(0);
  const Vid vid = lone->head.load_acquire();
  return vid.is_next_layer() || vid.is_deleted() ? nullptr : lone;
}

namespace {

/// One restructuring: the page's records in key order, and their destinations.
class Restructuring {
 public:
  Restructuring(WorkerContext& worker, Transaction* txn, BorderPage* page,
                const RestructureRequest& request, ScopedLock& page_lock)
      : worker_(worker),
        txn_(txn),
        page_(page),
        request_(request),
        page_lock_(page_lock),
        version_(page->header.version()),
        count_(version_.count()) {
    CHECK(count_ <= kBorderSlotBound);
    CHECK(!request.collapses_layers || (request.compaction_only && txn == nullptr));
    CHECK(request.drained_epoch == 0 || (request.compaction_only && txn == nullptr));
    DCHECK(request.drained_epoch == 0 || page->header.is_delta != 0);
    DCHECK(holds_page(worker, page) && !version_.is_moved());
  }

  Status run() {
    const uint32_t locked = lock_records();
    if (locked != count_) {
      unlock_records(locked);
      return worker_.cluster_failed() ? Status::cluster_failed : Status::write_conflict;
    }
    collect();
    if (request_.collapses_layers) plan_collapses();
    uint32_t middle = 0;
    uint64_t fence = 0;
    bool two = !fits_one() && choose_fence(middle, fence);
    if (planned_count_ != 0 && !fits_one() && !(two && both_fit(middle))) {
      forget_collapses();
      two = false;
    }
    if (two && request_.grow != nullptr && !both_fit(middle)) do_not_grow_yet();
    if (!two && bytes_ + request_.new_record_bytes + kSlotBytes > kBorderUsableBytes) {
      // No layer may have been dropped here: then the page would have to be replaced, because other
      // threads wait for that (await_drop).
      CHECK(dropped_count_ == 0);
      unlock_records(count_);
      // write_conflict: young tombstones occupy the room, and a later attempt can remove them.
      return living_bytes() + request_.new_record_bytes + kSlotBytes <= kBorderUsableBytes
                 ? Status::write_conflict
                 : Status::payload_too_long;
    }
    if (planned_count_ != 0) collapse_layers();
    DCHECK(dropped_count_ <= elided_count_ + planned_count_);
    if ((request_.collapses_layers || request_.drained_epoch != 0) && dropped_count_ == 0 &&
        elided_count_ == 0) {
      unlock_records(count_);
      return Status::write_conflict;  // the new page would equal the old one
    }
    freeze_next_layers();
    std::array<PageVersionEntry, 2> successors{};
    const uint32_t successor_count = two ? split(middle, fence, successors) : replace(successors);
    unlock_records(count_);
    if (txn_ == nullptr) return Status::ok;
    page_lock_.unlock();
    return txn_->page_replaced(&page_->header, version_, {successors.data(), successor_count},
                               {elided_.data(), elided_count_});
  }

 private:
  struct Item {
    uint64_t slice;
    TreeRecord* record;
    uint32_t bytes;
    BorderPage* collapsed;  // root of the next layer whose only record takes its slot, or null
  };

  /// Returns whether only the key of the record is copied. Tombstones of a delta tree stay until a
  /// snapshot has them (R78), and keep no room for a payload.
  bool is_emptied(const TreeRecord* record) const {
    const Vid vid(record->head.vid.load(std::memory_order_relaxed));
    return page_->header.is_delta != 0 && vid.is_stable_tombstone() && record != request_.grow &&
           !is_own_write(record);
  }
  static uint32_t emptied_capacity(const TreeRecord* record) {
    return TreeRecord::capacity_for(record->head.remainder, 0);
  }
  /// Returns the bytes that the copy of the record takes in the record heap.
  uint32_t bytes_of_copy(const TreeRecord* record) const {
    return is_emptied(record)
               ? TreeRecord::bytes_for(record->head.remainder, emptied_capacity(record))
               : copied_bytes(record, min_capacity(record));
  }

  uint32_t min_capacity(const TreeRecord* record) const {
    return record == request_.grow ? request_.grow_capacity : 0;
  }

  /// Returns record number `position` in universal order (R22). Records grow down from the end of
  /// the page, so the last slot comes first.
  TreeRecord* record_in_order(uint32_t position) const {
    return page_->record(fault::records_descending ? position : count_ - 1 - position);
  }

  /// Locks the records and returns how many it has locked. A compaction does not wait for locks,
  /// because no transaction needs the compaction (R45).
  uint32_t lock_records() {
    if (fault::move_without_record_locks) return count_;
    const bool may_wait = !request_.compaction_only || fault::wait_out_of_order;
    for (uint32_t done = 0; done < count_; ++done) {
      TreeRecord* record = record_in_order(done);
      McsWord& lock = record->head.lock;
      const UniversalName name = worker_.name_of(record);
      DCHECK(done == 0 || worker_.name_of(record_in_order(done - 1)) < name);
      const bool is_locked = may_wait ? worker_.locker().lock(lock, name) == Status::ok
                                      : worker_.locker().try_lock(lock);
      if (!is_locked) return done;
    }
    return count_;
  }

  void unlock_records(uint32_t locked) {
    if (fault::move_without_record_locks) return;
    for (uint32_t done = 0; done < locked; ++done) {
      worker_.locker().unlock(record_in_order(done)->head.lock);
    }
  }

  /// Returns whether the new pages do without the record. A delta tree keeps tombstones: they hide
  /// records of the snapshot (R78).
  bool may_elide(const TreeRecord* record, Vid vid, uint64_t limit) const {
    DCHECK(!vid.is_next_layer());
    if (page_->header.is_delta != 0 && !fault::elide_delta_tombstones) {
      return request_.drained_epoch != 0 &&
             is_in_snapshot(vid, request_.drained_epoch, worker_.view().control->epochs);
    }
    return is_removable(vid, limit) && record != request_.grow && !is_own_write(record);
  }

  void collect() {
    const uint64_t limit = removable_epoch(worker_);
    max_removed_vid_ = max_removed_vid_of(*page_);
    for (uint32_t slot = 0; slot < count_; ++slot) {
      TreeRecord* record = page_->record(slot);
      const Vid vid(record->head.vid.load(std::memory_order_relaxed));
      DCHECK(!vid.is_moved() && !vid.is_being_written());
      const bool goes =
          vid.is_next_layer() ? try_drop_layer(record) : may_elide(record, vid, limit);
      if (goes) {
        // A drain also removes reserved records, which stand for no commit (R10).
        const bool counts = request_.drained_epoch == 0 || vid.ordinal() != 0;
        if (counts && !fault::max_removed_vid_forgets_elided)
          max_removed_vid_ = std::max(max_removed_vid_, vid.version());
        elided_[elided_count_++] = {&record->head, vid};
        continue;
      }
      has_next_layers_ = has_next_layers_ || vid.is_next_layer();
      const uint32_t bytes = bytes_of_copy(record);
      has_emptied_ = has_emptied_ || is_emptied(record);
      items_[size_++] = {page_->slices()[slot], record, bytes, nullptr};
      bytes_ += bytes + kSlotBytes;
    }
    DCHECK(size_ + elided_count_ == count_);
    if (version_.is_ascending()) return;
    std::sort(items_.begin(), items_.begin() + size_, [](const Item& a, const Item& b) {
      if (a.slice != b.slice) return a.slice < b.slice;
      return length_class(a.record->head.remainder) < length_class(b.record->head.remainder);
    });
  }

  uint32_t living_bytes() const {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < size_; ++i) {
      const TreeRecord* record = items_[i].record;
      const Vid vid(record->head.vid.load(std::memory_order_relaxed));
      const bool stays = !vid.is_deleted() || vid.is_next_layer() || record == request_.grow ||
                         is_own_write(record) || page_->header.is_delta != 0;
      if (stays) bytes += items_[i].bytes + kSlotBytes;
    }
    return bytes;
  }

  /// Compares places first, then keys: an earlier split or spread of the transaction may have moved
  /// the record, and the write still names the old place (R14).
  bool is_own_write(const TreeRecord* record) const {
    if (txn_ == nullptr || txn_->plans_no_write() || fault::elide_own_writes) return false;
    if (txn_->has_write_at(worker_.name_of(record))) return true;
    std::array<std::byte, 8 + kMaxTreeKeyBytes> key;  // the bytes from this layer on
    const uint32_t suffix_bytes = record->suffix_bytes();
    put_slice(page_->slices()[record->head.slot], key.data());
    std::memcpy(key.data() + 8, record->suffix(), suffix_bytes);
    const uint32_t bytes = record->head.remainder > 8 ? 8 + suffix_bytes : record->head.remainder;
    return txn_->has_write_to(page_->header.storage_id, std::span(key).first(bytes));
  }

  /// Marks the root page of an empty next layer as dropped, so that the layer is removed together
  /// with its slot (R45). Returns true if the root was marked; the caller must then replace
  /// `page_`. Returns false if nothing was changed.
  bool try_drop_layer(TreeRecord* record) {
    if (!request_.compaction_only) return false;
    const VolatilePointer word = record->next_layer()->load_acquire();
    if (word.is_null()) return false;  // the layer is in a snapshot only
    TreePage* root = tree_page(worker_.view().resolve(word.thawed()));
    if (!root->is_border()) return false;
    ScopedLock lock;
    if (!lock.try_lock_page(worker_, root)) return false;
    const PageVersion version = root->header.version();
    if (version.is_moved()) return false;
    if (version.count() != 0 && !fault::drop_layer_with_keys) return false;
    DCHECK(root->low == 0 && root->high_is_end());
    freeze(*record->next_layer());
    max_removed_vid_ = std::max(max_removed_vid_, max_removed_vid_of(*root));
    dropped_layers_[dropped_count_++] = root;
    if (fault::drop_layer_unmarked) return true;
    root->header.set_version(version.with_status(PageVersion::kMoved | PageVersion::kDropped));
    return true;
  }

  /// Plans collapses: the only living record of a layer takes the slot of the layer (R70). Plans as
  /// many as two pages have room for. Takes no locks, so `collapse_layer` checks again.
  void plan_collapses() {
    for (uint32_t i = 0; i < size_; ++i) {
      const Vid vid(items_[i].record->head.vid.load(std::memory_order_relaxed));
      if (!vid.is_next_layer()) continue;
      BorderPage* root = only_page_below(worker_, items_[i].record);
      const TreeRecord* lone = root == nullptr ? nullptr : lone_record_of(root);
      if (lone == nullptr) continue;
      const uint32_t raised = raised_bytes(lone);
      const uint32_t bytes = bytes_ - items_[i].bytes + raised;
      // If both halves were equal, each page would be at most 3/4 full. The rest is room for
      // unequal halves: one half may be larger by half of the largest record.
      const bool fits_two = raised <= kBorderUsableBytes / 4 && bytes <= kBorderUsableBytes * 3 / 2;
      if (bytes + kSlotBytes > kBorderUsableBytes && !fits_two) continue;
      bytes_ = bytes;
      items_[i].bytes = raised;
      items_[i].collapsed = root;
      ++planned_count_;
    }
  }

  void forget_collapses() {
    for (uint32_t i = 0; i < size_; ++i) {
      if (items_[i].collapsed == nullptr) continue;
      bytes_ -= items_[i].bytes;
      items_[i].bytes = bytes_of_copy(items_[i].record);
      bytes_ += items_[i].bytes;
      items_[i].collapsed = nullptr;
    }
    planned_count_ = 0;
  }

  /// Carries out the planned collapses. The caller must replace the page after that.
  void collapse_layers() {
    for (uint32_t i = 0; i < size_; ++i) {
      Item& item = items_[i];
      if (item.collapsed != nullptr && !collapse_layer(item)) item.collapsed = nullptr;
    }
  }

  /// Marks the root page of a layer as dropped, so that its only record can take the slot of the
  /// layer (R70). Returns false and changes nothing if the layer no longer has exactly one living
  /// record, or if a lock is not free.
  bool collapse_layer(const Item& item) {
    TreePage* root = item.collapsed;
    ScopedLock page_lock;
    if (!page_lock.try_lock_page(worker_, root)) return false;
    const PageVersion version = root->header.version();
    DualPointer& link = *item.record->next_layer();
    if (version.is_moved() || version.count() != 1 || link.load_acquire() != root->self()) {
      return false;
    }
    TreeRecord* lone = border_page(root)->record(0);
    // Tries the record's lock, because a commit that holds it may still write the record (R7).
    // Later commits find the record moved. So the copy, which is made later, has all writes.
    ScopedLock record_lock;
    if (!fault::collapse_locked_records && !record_lock.try_lock(worker_, lone->head.lock)) {
      return false;
    }
    const Vid vid(lone->head.vid.load(std::memory_order_relaxed));
    if (vid.is_next_layer() || vid.is_deleted() || raised_bytes(lone) > item.bytes) return false;
    DCHECK(root->low == 0 && root->high_is_end() && dropped_count_ < dropped_layers_.size());
    freeze(link);
    // From now on the successor may get keys whose tombstones the layer has elided (R43).
    max_removed_vid_ = std::max(max_removed_vid_, max_removed_vid_of(*root));
    lone->head.vid.store(vid.word() | Vid::kMoved, std::memory_order_release);
    root->header.set_version(version.with_status(PageVersion::kMoved | PageVersion::kDropped));
    dropped_layers_[dropped_count_++] = root;
    return true;
  }

  void freeze_next_layers() {
    for (uint32_t i = 0; i < size_; ++i) {
      const Vid vid(items_[i].record->head.vid.load(std::memory_order_relaxed));
      if (vid.is_next_layer()) freeze(*items_[i].record->next_layer());
    }
  }

  bool fits_one() const {
    if (request_.compaction_only) {
      return planned_count_ == 0 || bytes_ + kSlotBytes <= kBorderUsableBytes;
    }
    const uint32_t wanted = bytes_ + request_.new_record_bytes + kSlotBytes;
    // Leaves room, so that the next few inserts do not replace the page again.
    return wanted <= kBorderUsableBytes * 6 / 10 && (size_ + 1) * 10 <= kMaxBorderSlots * 6;
  }

  bool both_fit(uint32_t middle) const {
    uint32_t left = 0;
    for (uint32_t i = 0; i < middle; ++i) left += items_[i].bytes + kSlotBytes;
    return left <= kBorderUsableBytes && bytes_ - left <= kBorderUsableBytes;
  }

  /// Gives up the enlargement in this split, because the enlarged record and its neighbours need
  /// more than two pages. The caller retries, and then finds the record with fewer neighbours.
  void do_not_grow_yet() {
    request_.grow = nullptr;
    for (uint32_t i = 0; i < size_; ++i) {
      bytes_ -= items_[i].bytes;
      items_[i].bytes = bytes_of_copy(items_[i].record);
      bytes_ += items_[i].bytes;
    }
  }

  /// Chooses the fence: items [middle, size) go to the right page, with all slices >= `fence`.
  /// Returns false if there are no items, or if all items and the new key have one slice.
  bool choose_fence(uint32_t& middle, uint64_t& fence) const {
    if (size_ == 0) return false;
    if (choose_middle_of_range(middle, fence)) return true;
    if (request_.new_record_bytes != 0 && choose_at_insert(middle, fence)) return true;
    uint32_t best = 0;
    uint32_t best_distance = ~0u;
    uint32_t left_bytes = 0;
    for (uint32_t i = 1; i < size_; ++i) {
      left_bytes += items_[i - 1].bytes + kSlotBytes;
      if (items_[i].slice == items_[i - 1].slice) continue;
      const uint32_t twice = 2 * left_bytes;
      const uint32_t distance = twice > bytes_ ? twice - bytes_ : bytes_ - twice;
      if (distance >= best_distance) continue;
      best = i;
      best_distance = distance;
    }
    if (best != 0) {
      middle = best;
      fence = fence_between(items_[best - 1].slice, items_[best].slice);
      return true;
    }
    return choose_beside_single_slice(middle, fence);
  }

  bool is_page_of_hashes() const {
    const PageHeader& header = page_->header;
    const StorageControl& storage = worker_.view().control->storage(header.storage_id);
    return storage.type == StorageType::hash && header.layer == 0;
  }

  /// Divides a page of hashes in the middle of its range. Entries of the directory begin there.
  bool choose_middle_of_range(uint32_t& middle, uint64_t& fence) const {
    if (!is_page_of_hashes()) return false;
    const uint64_t last = page_->last();
    DCHECK(page_->low <= last);
    fence = page_->low + (last - page_->low) / 2 + 1;
    middle = 0;
    while (middle < size_ && items_[middle].slice < fence) ++middle;
    return middle != 0 && middle != size_;
  }

  /// Handles ascending inserts, where the new key follows the record inserted last. If no other key
  /// follows the new key, the left page stays full and the new key starts the right page. If other
  /// keys follow it, they go to the right page, and the new key goes to the left one.
  bool choose_at_insert(uint32_t& middle, uint64_t& fence) const {
    if (count_ == 0) return false;
    const TreeRecord* newest = page_->record(count_ - 1);
    uint32_t after = 0;
    while (after < size_ && items_[after].slice < request_.new_slice) ++after;
    if (after == 0 || items_[after - 1].record != newest) return false;
    if (after < size_ && items_[after].slice == request_.new_slice) return false;
    middle = after;
    fence =
        after < size_ ? fence_between(request_.new_slice, items_[after].slice) : request_.new_slice;
    return true;
  }

  /// Handles a page that one slice fills: the new key gets an empty page beside it.
  bool choose_beside_single_slice(uint32_t& middle, uint64_t& fence) const {
    if (request_.new_record_bytes == 0 || request_.new_slice == items_[0].slice) return false;
    const bool right = request_.new_slice > items_[0].slice;
    middle = right ? size_ : 0;
    fence = right ? request_.new_slice : items_[0].slice;
    return true;
  }

  /// Returns whether the new page gets all records of `page_` unchanged, as the left page does when
  /// inserts ascend.
  bool takes_all_as_they_lie(uint32_t first, uint32_t last) const {
    return first == 0 && last == count_ && size_ == count_ && version_.is_ascending() &&
           request_.grow == nullptr && !has_next_layers_ && !has_emptied_;
  }

  BorderPage* copy(uint32_t first, uint32_t last, const SliceRange& range) {
    if (takes_all_as_they_lie(first, last) && !range.contains(request_.new_slice)) {
      BorderPage* to = new_border(worker_, tree_of(*page_), page_->header.layer, range,
                                  page_->slot_capacity(), max_removed_vid_);
      copy_all_records(to, page_, count_);
      to->header.set_version(PageVersion::make(0, count_, PageVersion::kAscending));
      return to;
    }
    uint32_t bytes = 0;
    for (uint32_t i = first; i < last; ++i) bytes += items_[i].bytes;
    DCHECK(first <= last && last <= size_);
    const uint32_t count = last - first;
    // `typical` is the average size of these records and the new one.
    const uint32_t likely = request_.new_record_bytes != 0 ? 1 : 0;
    const uint32_t typical = count + likely == 0
                                 ? TreeRecord::bytes_with(8, 8)
                                 : (bytes + likely * request_.new_record_bytes) / (count + likely);
    const bool comes_here = likely != 0 && range.contains(request_.new_slice);
    const uint32_t wanted =
        std::max(BorderPage::capacity_for(typical), count + (comes_here ? 1 : 0));
    // If this page gets all records, keeps room for the new one, because `run` relies on it.
    const uint32_t promised =
        first == 0 && last == size_ && comes_here ? request_.new_record_bytes : 0;
    const uint32_t fitting =
        (kBorderUsableBytes - std::min(kBorderUsableBytes, bytes + promised)) / kSlotBytes;
    BorderPage* to = new_border(worker_, tree_of(*page_), page_->header.layer, range,
                                std::max(std::min(wanted, fitting), count), max_removed_vid_);
    for (uint32_t i = first; i < last; ++i) {
      const Item& item = items_[i];
      if (item.collapsed != nullptr) {
        raise_record(to, i - first, item.slice, item.collapsed);
      } else if (is_emptied(item.record)) {
        write_slot(to, i - first, item.slice, item.record->head.remainder, item.record->suffix(),
                   emptied_capacity(item.record),
                   Vid(item.record->head.vid.load(std::memory_order_relaxed)));
      } else {
        copy_record(to, i - first, item.slice, item.record, min_capacity(item.record));
      }
    }
    to->header.set_version(PageVersion::make(0, count, PageVersion::kAscending));
    return to;
  }

  /// Publishes the move in the order of R7: first all VIDs, then the page word, then the twins.
  void publish(BorderPage* left, BorderPage* right, uint64_t fence) {
    DCHECK(left->low == page_->low && right->contains(fence));
    DCHECK(left->header.level == 0 && left->header.layer == page_->header.layer);
    for (uint32_t slot = 0; slot < count_ && !fault::keep_vids_on_move; ++slot) {
      std::atomic<uint64_t>& vid = page_->record(slot)->head.vid;
      vid.store(vid.load(std::memory_order_relaxed) | Vid::kMoved, std::memory_order_release);
    }
    reach(SyncPoint::moved_records);
    page_->header.set_version(version_.with_status(PageVersion::kMoved));
    page_->set_twins(left->self(), right->self(), fence);
    for (uint32_t i = 0; i < dropped_count_; ++i) {
      worker_.pages().retire(&dropped_layers_[i]->header);
    }
  }

  uint32_t replace(std::array<PageVersionEntry, 2>& successors) {
    BorderPage* whole = copy(0, size_, range_of(*page_));
    successors[0] = {&whole->header, whole->header.version()};
    publish(whole, whole, page_->low);
    worker_.metrics().compactions.add();
    return 1;
  }

  uint32_t split(uint32_t middle, uint64_t fence, std::array<PageVersionEntry, 2>& successors) {
    DCHECK((!request_.compaction_only || planned_count_ != 0) && middle <= size_);
    DCHECK(page_->low < fence && page_->contains(fence));
    DCHECK(middle == 0 || items_[middle - 1].slice < fence);
    DCHECK(middle == size_ || fence <= items_[middle].slice);
    BorderPage* left = copy(0, middle, {page_->low, fence, false});
    BorderPage* right = copy(middle, size_, {fence, page_->high, page_->high_is_end()});
    // Loads the versions here, before other threads can find and change the new pages.
    successors[0] = {&left->header, left->header.version()};
    successors[1] = {&right->header, right->header.version()};
    publish(left, right, fence);
    worker_.metrics().splits.add();
    const bool wants_pack = txn_ != nullptr && page_->header.is_delta == 0 && is_page_of_hashes();
    if (wants_pack) push_pack_hint(worker_, *right, fence);
    return 2;
  }

  WorkerContext& worker_;
  Transaction* txn_;
  BorderPage* page_;
  RestructureRequest request_;
  ScopedLock& page_lock_;
  PageVersion version_;
  uint32_t count_;
  uint64_t max_removed_vid_ = 0;
  uint32_t size_ = 0;
  uint32_t bytes_ = 0;
  bool has_next_layers_ = false;
  bool has_emptied_ = false;
  uint32_t elided_count_ = 0;
  uint32_t dropped_count_ = 0;
  uint32_t planned_count_ = 0;  // number of items with a `collapsed` page
  std::array<Item, kBorderSlotBound> items_;
  std::array<ReadEntry, kBorderSlotBound> elided_;
  std::array<TreePage*, kBorderSlotBound> dropped_layers_;
};

}  // namespace

Status restructure(WorkerContext& worker, Transaction* txn, BorderPage* page,
                   const RestructureRequest& request, ScopedLock& page_lock) {
  // R105: the page may have records that this worker has locked early.
  worker.release_early_locks();
  return Restructuring(worker, txn, page, request, page_lock).run();
}

}  // namespace atolldb
