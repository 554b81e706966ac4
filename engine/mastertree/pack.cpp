#include "engine/mastertree/pack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "engine/format/tree_key.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/interior_copy.h"
#include "engine/mastertree/prefetch.h"
#include "engine/mastertree/replace_run.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/run_locks.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

static_assert(kMaxPackedPages <= RunLocks::kMaxPages && kMaxPackedPages > 1);
static_assert(kMaxSpreadPages > 1 && kMaxSpreadPages * kBorderSlotBound <= RunLocks::kMaxRecords);
/// A spread may add a page, and needs one for the successor of the parent.
static_assert(kMaxSpreadPages + 2 <= kMaxPackedPages && kMaxPackedPages <= 8);

/// Limits of a new page, with the record that is to be inserted into it. The free
/// rest of a page may be too small for one large record.
constexpr uint32_t kMaxPackedBytes = kBorderUsableBytes - kBorderUsableBytes / 32;
constexpr uint32_t kMaxPackedSlots = kMaxBorderSlots - std::max(1u, kMaxBorderSlots / 32);
/// Average slots in a new page.
constexpr uint32_t kPackedSlots =
    std::max(1u, kPackedFill.part* kMaxBorderSlots / kPackedFill.whole);
static_assert(kPackedBytes < kMaxPackedBytes && kPackedSlots <= kMaxPackedSlots);

/// What a replacement of pages is for.
struct PackRequest {
  /// The pages around this slice are replaced.
  uint64_t slice;
  /// Bytes of the record that a spread makes room for, in the page of `slice`. 0: a pack, which
  /// needs fewer pages than before.
  uint32_t new_record_bytes = 0;

  bool makes_room() const { return new_record_bytes != 0; }
};

/// The pages of a replacement, with their versions before it and after it.
struct PackedRun {
  std::array<PageVersionEntry, RunLocks::kMaxPages> old_pages;
  std::array<PageVersionEntry, kMaxPackedPages> new_pages;
  uint32_t old_count = 0;
  uint32_t new_count = 0;  // 0: nothing was done
};

/// One pack: the run of pages, their records in key order, and the cuts between the new pages.
class Pack {
 public:
  Pack(WorkerContext& worker, StorageControl& storage, const TreePath::Step& parent,
       const PackRequest& request, PackedRun& run)
      : worker_(worker),
        storage_(storage),
        link_(parent.link),
        parent_(parent.page),
        request_(request),
        run_(run),
        locks_(worker, storage) {
    DCHECK(storage.type == StorageType::hash && parent_->header.level == 1);
    DCHECK(parent_->header.is_delta == 0 && parent_->header.layer == 0 && run.new_count == 0);
  }

  /// Replaces pages around the slice, and sets the members of the PackedRun.
  void run() {
    if (parent_->header.version().count() < 2) return;  // no neighbours
    // R23: pages are reserved before locks are taken. The last one is the parent's successor.
    if (!worker_.reserve_pages(kMaxPackedPages) || !locks_.lock_parent(parent_)) return;
    const ChildRanges children(*parent_, parent_->header.version().count());
    const bool is_found =
        request_.makes_room() ? find_run_with_room(children) : find_run_around(children);
    if (!is_found || !lock_pages(children) || !lock_records() || !choose_pages()) return;
    // Many parents share the holder. So the copies are made before its lock is taken.
    build();
    if (!locks_.lock_holder(link_, parent_)) {
      for (uint32_t i = 0; i < new_count_; ++i) worker_.pages().give_back(&new_pages_[i]->header);
      return;
    }
    reach(SyncPoint::publishing_merge);
    publish();
  }

 private:
  /// Returns the number of records of a child, or nothing if it cannot be in a run. Reads its
  /// header without locks.
  std::optional<uint32_t> records_in(const ChildRanges& children, uint32_t position) const {
    const VolatilePointer word = parent_->children[children[position]].load_acquire();
    if (word.is_null() || word.is_frozen()) return std::nullopt;
    const PageVersion version = worker_.view().resolve(word)->version();
    if (version.is_moved()) return std::nullopt;
    return version.count();
  }

  /// Finds the run [first_, last_) of children around the one that holds the slice.
  bool find_run_around(const ChildRanges& children) {
    const uint32_t at = children.position_of(request_.slice);
    uint32_t records = 0;
    const auto joins = [&](uint32_t position) {
      if (last_ - first_ == kMaxPackedPages) return false;
      const std::optional<uint32_t> more = records_in(children, position);
      if (!more || records + *more > RunLocks::kMaxRecords) return false;
      records += *more;
      return true;
    };
    first_ = at;
    last_ = at;
    if (!joins(at)) return false;
    ++last_;
    while (last_ < children.size() && last_ - at <= kMaxPackedPages / 2 && joins(last_)) ++last_;
    while (first_ > 0 && joins(first_ - 1)) --first_;
    while (last_ < children.size() && joins(last_)) ++last_;
    DCHECK(first_ <= at && at < last_ && last_ - first_ <= kMaxPackedPages);
    return last_ - first_ > 1;
  }

  /// Finds the shortest run that probably needs no further page: the page that holds the slice is
  /// full, and its neighbours have room. If there is none, finds the longest run with the most
  /// records.
  bool find_run_with_room(const ChildRanges& children) {
    const uint32_t at = children.position_of(request_.slice);
    uint32_t begin = at;  // pages that can be in the run: [begin, end)
    while (begin > 0 && at - begin + 1 < kMaxSpreadPages && records_in(children, begin - 1)) {
      --begin;
    }
    std::array<uint32_t, 2 * kMaxSpreadPages> sums{};  // records before each of these pages
    uint32_t end = begin;
    for (; end < children.size() && end < at + kMaxSpreadPages; ++end) {
      const std::optional<uint32_t> records = records_in(children, end);
      if (!records) break;
      sums[end - begin + 1] = sums[end - begin] + *records;
    }
    if (end <= at || end - begin < 2) return false;
    const auto take_best = [&](uint32_t pages, auto&& is_better) {
      uint32_t best = 0;
      bool is_first = true;
      for (uint32_t first = std::max(begin + pages, at + 1) - pages;
           first <= at && first + pages <= end; ++first) {
        const uint32_t records = sums[first + pages - begin] - sums[first - begin];
        if (!is_first && !is_better(records, best)) continue;
        is_first = false;
        best = records;
        first_ = first;
        last_ = first + pages;
      }
      return best;
    };
    const uint32_t full = sums[at - begin + 1] - sums[at - begin];
    const uint32_t most = std::min(kMaxSpreadPages, end - begin);
    for (uint32_t pages = 2; pages <= most; ++pages) {
      const uint32_t records = take_best(pages, std::less<uint32_t>());
      if (records * kPackedFill.whole <= full * pages * kPackedFill.part) return true;
    }
    take_best(most, std::greater<uint32_t>());
    return true;
  }

  /// Locks the pages, and computes the least and the largest number of new ones. Returns false if
  /// the least is too large, or if the page already has room for the record.
  bool lock_pages(const ChildRanges& children) {
    uint32_t bytes = 0;
    uint32_t records = 0;
    const auto prefetch = [&](uint32_t position) {
      const VolatilePointer word = parent_->children[children[position]].load_acquire();
      if (word.is_null()) return;
      const auto* page = reinterpret_cast<const std::byte*>(worker_.view().resolve(word.thawed()));
      prefetch_lines(page, page + kPageBytes);
    };
    for (uint32_t i = first_; i < last_; ++i) prefetch(i);
    for (uint32_t i = first_; i < last_; ++i) {
      const BorderPage* page = locks_.lock_child(parent_->children[children[i]]);
      if (page == nullptr) return false;
      DCHECK(page->header.storage_id == storage_.id && page->header.layer == 0);
      const uint32_t count = page->header.version().count();
      // Another transaction may have made room since this one has found the page full.
      const bool has_room = request_.makes_room() && page->contains(request_.slice) &&
                            page->has_room(count, request_.new_record_bytes);
      if (has_room) return false;
      records += count;
      bytes += static_cast<uint32_t>(kPageBytes) - page->heap_begin + count * kSlotBytes;
    }
    const uint32_t for_bytes = (bytes + kPackedBytes - 1) / kPackedBytes;
    const uint32_t for_slots = (records + kPackedSlots - 1) / kPackedSlots;
    new_count_ = std::max({1u, for_bytes, for_slots});
    const uint32_t old_count = last_ - first_;
    max_new_count_ = old_count - 1;
    if (request_.makes_room()) {
      max_new_count_ = std::min(old_count + 1, kInteriorCapacity - (children.size() - old_count));
    }
    return new_count_ <= max_new_count_;
  }

  /// Locks all records, and collects them in key order. Pages that lead to a next layer are rare,
  /// because only keys with equal hashes make one, and are not replaced.
  bool lock_records() {
    const uint64_t limit = removable_epoch(worker_);
    for (TreePage* tree : locks_.pages()) {
      BorderPage* page = border_page(tree);
      const PageVersion version = page->header.version();
      const uint32_t first = size_;
      uint32_t removable = 0;
      for (uint32_t slot = 0; slot < version.count(); ++slot) {
        TreeRecord* record = page->record(slot);
        if (!fault::pack_without_record_locks && !locks_.lock_record(record)) return false;
        const Vid vid = record->head.load_acquire();
        if (vid.is_next_layer() || size_ == RunLocks::kMaxRecords) return false;
        // The record is locked, so no worker writes it.
        DCHECK(!vid.is_moved() && page->contains(page->slices()[slot]));
        removable += is_removable(vid, limit) ? 1 : 0;
        records_[size_++] = {page->slices()[slot], record};
      }
      // A split removes these tombstones, and then perhaps needs no second page.
      const bool is_full_page = request_.makes_room() && page->contains(request_.slice);
      if (is_full_page && removable * kTombstonePart > version.count()) return false;
      // Most pages were built in order, and then got a few more records.
      if (!version.is_ascending()) insertion_sort(&records_[first], size_ - first, precedes);
    }
    if (request_.makes_room()) insert_new_record();
    DCHECK(size_ <= records_.size());
    ends_[0] = 0;
    for (uint32_t i = 0; i < size_; ++i) {
      const uint32_t bytes = records_[i].record == nullptr ? request_.new_record_bytes
                                                           : copied_bytes(records_[i].record, 0);
      ends_[i + 1] = ends_[i] + bytes + kSlotBytes;
    }
    return size_ >= new_count_;
  }

  /// Adds a place for the new record, so that the cuts leave room for it.
  void insert_new_record() {
    const auto end = records_.begin() + size_;
    const auto at = std::upper_bound(
        records_.begin(), end, request_.slice,
        [](uint64_t slice, const SlotSource& source) { return slice < source.slice; });
    std::copy_backward(at, end, end + 1);
    *at = {request_.slice, nullptr};
    new_at_ = static_cast<uint32_t>(at - records_.begin());
    ++size_;
  }
  /// Removes that place again. The page with the slice of the new record keeps the room for it.
  void remove_new_record() {
    DCHECK(records_[new_at_].record == nullptr);
    std::copy(records_.begin() + new_at_ + 1, records_.begin() + size_, records_.begin() + new_at_);
    --size_;
    for (uint32_t i = 0; i <= new_count_; ++i) cuts_[i] -= cuts_[i] > new_at_ ? 1 : 0;
  }

  /// Returns whether the page that begins with record `from` may end before record `at`, so that
  /// `pages` more pages have room for the rest.
  bool may_cut(uint32_t from, uint32_t at, uint32_t pages) const {
    if (at <= from || at >= size_ || records_[at - 1].slice == records_[at].slice) return false;
    const uint32_t rest = size_ - at;
    return ends_[at] - ends_[from] <= kMaxPackedBytes && at - from <= kMaxPackedSlots &&
           ends_[size_] - ends_[at] <= pages * kMaxPackedBytes && rest <= pages * kMaxPackedSlots &&
           rest >= pages;
  }

  /// Chooses the number of new pages and the cuts between them. A spread takes more pages if large
  /// records do not fit. Returns false if a page would have no room for its records, the new one
  /// included.
  bool choose_pages() {
    if (!request_.makes_room()) return choose_cuts();
    for (; new_count_ <= max_new_count_; ++new_count_) {
      if (choose_cuts()) return true;
    }
    return false;
  }

  /// Divides the records into pages of about equal size. Among the cuts near the even one, prefers
  /// the fence with the most zero bits at its end, because entries of the directory begin there.
  bool choose_cuts() {
    constexpr uint32_t kTolerance = 1;  // records
    cuts_[0] = 0;
    for (uint32_t page = 0; page + 1 < new_count_; ++page) {
      const uint32_t from = cuts_[page];
      const uint32_t pages = new_count_ - page;
      const uint32_t even_end = ends_[from] + (ends_[size_] - ends_[from]) / pages;
      uint32_t even = from + 1;
      while (even < size_ && ends_[even] < even_end) ++even;
      uint32_t best = 0;
      std::pair<int, uint32_t> best_worth{-1, 0};
      for (uint32_t at = even - std::min(even, kTolerance); at <= even + kTolerance; ++at) {
        if (!may_cut(from, at, pages - 1)) continue;
        const int zeros = std::countr_zero(fence_before(at));
        const uint32_t distance = at < even ? even - at : at - even;
        const std::pair<int, uint32_t> worth{zeros, kTolerance - distance};
        if (worth <= best_worth) continue;
        best = at;
        best_worth = worth;
      }
      if (best == 0) return false;
      cuts_[page + 1] = best;
    }
    cuts_[new_count_] = size_;
    DCHECK(std::ranges::is_sorted(std::span(cuts_).first(new_count_ + 1)));
    return ends_[size_] - ends_[cuts_[new_count_ - 1]] <= kMaxPackedBytes;
  }

  uint64_t fence_before(uint32_t at) const {
    return fence_between(records_[at - 1].slice, records_[at].slice);
  }

  /// Builds the new pages. No other thread can reach them before they are published, and the
  /// locked records do not change.
  void build() {
    const std::span<TreePage* const> old_pages = locks_.pages();
    const TreePage& front = *old_pages.front();
    const TreePage& back = *old_pages.back();
    DCHECK(front.low < back.high || back.high_is_end());
    std::array<uint64_t, kMaxPackedPages> fences{};  // before each page but the first
    for (uint32_t i = 1; i < new_count_; ++i) fences[i] = fence_before(cuts_[i]);
    if (request_.makes_room()) remove_new_record();
    SliceRange range{front.low, 0, false};
    for (uint32_t i = 0; i < new_count_; ++i) {
      const bool is_last = i + 1 == new_count_;
      range.high = is_last ? back.high : fences[i + 1];
      range.high_is_end = is_last && back.high_is_end();
      const uint32_t promised = range.contains(request_.slice) ? request_.new_record_bytes : 0;
      BorderPage* const page =
          new_border_with(worker_, {tree_of(front), front.header.layer, range},
                          std::span(records_).subspan(cuts_[i], cuts_[i + 1] - cuts_[i]),
                          locks_.max_removed_vid(), promised);
      DCHECK(promised == 0 || page->has_room(page->header.version().count(), promised));
      new_pages_[i] = page;
      range.low = range.high;
    }
  }

  void publish() {
    const std::span<TreePage* const> old_pages = locks_.pages();
    for (uint32_t i = 0; i < new_count_; ++i) {
      run_.new_pages[i] = {&new_pages_[i]->header, new_pages_[i]->header.version()};
    }
    for (TreePage* page : old_pages) {
      run_.old_pages[run_.old_count++] = {&page->header, page->header.version()};
    }
    RunReplacement replacement(worker_, link_, parent_, first_, last_,
                               std::span(new_pages_).first(new_count_), locks_.max_removed_vid());
    // R7: first all VIDs, then the page words, then the twins.
    locks_.mark_records_moved();
    // An old page may have records in more than two new pages, so its twins lead to their parent.
    replacement.publish(old_pages, [&](const TreePage*) -> TreePage* {
      return fault::packed_pages_lead_to_first ? new_pages_[0] : replacement.successor();
    });
    run_.new_count = new_count_;
    WorkerMetrics& metrics = worker_.metrics();
    (new_count_ < run_.old_count   ? metrics.merges
     : new_count_ > run_.old_count ? metrics.splits
                                   : metrics.compactions)
        .add();
  }

  /// A spread leaves a full page if more than one in this many of its records can be removed.
  static constexpr uint32_t kTombstonePart = 8;

  WorkerContext& worker_;
  StorageControl& storage_;
  const Link& link_;
  InteriorPage* parent_;
  const PackRequest request_;
  PackedRun& run_;
  uint32_t first_ = 0;
  uint32_t last_ = 0;
  uint32_t new_count_ = 0;
  uint32_t max_new_count_ = 0;
  uint32_t size_ = 0;
  uint32_t new_at_ = 0;  // place of the new record in `records_`, which is null there
  std::array<SlotSource, RunLocks::kMaxRecords + 1> records_;
  std::array<uint32_t, RunLocks::kMaxRecords + 2> ends_;  // bytes of the records before each one
  std::array<uint32_t, kMaxPackedPages + 1> cuts_;        // first record of each new page
  std::array<TreePage*, kMaxPackedPages> new_pages_;
  RunLocks locks_;
};

/// Replaced pages are free only after their grace (R9), which a long transaction extends. So packs
/// stop while this worker waits for many pages, compared with its share of the free ones: all
/// workers of the node share the pool.
bool may_retire_more(WorkerContext& worker) {
  constexpr uint64_t kFreeForEachRetired = 4;
  const uint64_t retired = worker.pages().retired_count();
  if (retired == 0) return true;
  const uint64_t workers = worker.view().shared[worker.node()]->worker_count;
  DCHECK(workers != 0);
  // Loads the pool's count only, because to collect remote frees takes the lock of the pool.
  return retired * workers * kFreeForEachRetired <= worker.pages().free_estimate();
}

/// Replaces pages around the slice, and stores the new ones in the directory. Releases all locks.
/// `txn`: the active transaction, or null.
void replace_around(WorkerContext& worker, const Transaction* txn, StorageControl& storage,
                    const PackRequest& request, PackedRun& run) {
  const uint64_t slice = request.slice;
  if (!may_retire_more(worker)) return;
  const Link root = root_link(storage);
  TreePath path;
  if (!find_path(worker, root, slice, path)) {
    // Adopts the successors of pages that were divided.
    find_border(worker, storage, root, slice, Adoption::whole_way);
    if (!find_path(worker, root, slice, path)) return;
  }
  if (path.border == nullptr || path.size == 0) return;
  DCHECK(path.border->contains(slice));
  const TreePath::Step& parent = path.steps[path.size - 1];
  // R103: the replacement of the parent would freeze a null word that the transaction has read.
  if (txn != nullptr && txn->has_pointer_in(&parent.page->header)) return;
  Pack(worker, storage, parent, request, run).run();
  PageDirectory* const directory = worker.directory();
  for (uint32_t i = 0; i < run.new_count && directory != nullptr; ++i) {
    directory->remember_all(worker.view(), storage.id, tree_page(run.new_pages[i].page));
  }
}

}  // namespace

bool pack_around(WorkerContext& worker, StorageControl& storage, uint64_t slice) {
  PackedRun run;
  replace_around(worker, nullptr, storage, {.slice = slice}, run);
  return run.new_count != 0;
}

Status spread_around(Transaction& txn, StorageControl& storage, uint64_t slice,
                     uint32_t record_bytes) {
  DCHECK(record_bytes != 0);
  PackedRun run;
  replace_around(txn.worker(), &txn, storage, {slice, record_bytes}, run);
  // R103: each old page is followed by all new pages that have a part of its range.
  const auto ends_before = [](const PageVersionEntry& entry, const PageVersionEntry& next) {
    const TreePage& page = *tree_page(entry.page);
    return !page.high_is_end() && page.high <= tree_page(next.page)->low;
  };
  uint32_t first = 0;
  for (const PageVersionEntry& old : std::span(run.old_pages).first(run.old_count)) {
    while (ends_before(run.new_pages[first], old)) ++first;
    uint32_t last = first + 1;
    while (last < run.new_count && !ends_before(old, run.new_pages[last])) ++last;
    DCHECK(first < run.new_count);
    std::span<const PageVersionEntry> successors(run.new_pages);
    successors = fault::spread_registers_one_page ? successors.first(1)
                                                  : successors.subspan(first, last - first);
    const Status status = txn.page_replaced(old.page, old.seen, successors, {});
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

void push_pack_hint(WorkerContext& worker, const TreePage& page, uint64_t slice) {
  DCHECK(page.header.layer == 0 && page.header.is_delta == 0 && page.contains(slice));
  Hint hint;
  hint.not_before = worker.current_epoch();
  hint.page = page.header.self;
  hint.slice = slice;
  hint.storage_id = page.header.storage_id;
  hint.prefix_bytes = 0;
  hint.is_split = true;
  worker.hints().push(hint, {});
}

}  // namespace atolldb
