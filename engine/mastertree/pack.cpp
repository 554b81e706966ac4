#include "engine/mastertree/pack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

#include "engine/format/tree_key.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/replace_run.h"
#include "engine/mastertree/run_locks.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

static_assert(kMaxPackedPages <= RunLocks::kMaxPages && kMaxPackedPages > 1);

/// Limits of a packed page: each page has room for at least one more record of average size.
constexpr uint32_t kMaxPackedBytes = kBorderUsableBytes - kBorderUsableBytes / 32;
constexpr uint32_t kMaxPackedSlots = kMaxBorderSlots - std::max(1u, kMaxBorderSlots / 32);
static_assert(kPackedBytes < kMaxPackedBytes);

/// One pack: the run of pages, their records in key order, and the cuts between the new pages.
class Pack {
 public:
  Pack(WorkerContext& worker, StorageControl& storage, const Link& link, InteriorPage* parent)
      : worker_(worker), storage_(storage), link_(link), parent_(parent), locks_(worker, storage) {
    DCHECK(storage.type == StorageType::hash && parent->header.level == 1);
    DCHECK(parent->header.is_delta == 0 && parent->header.layer == 0);
  }

  /// Returns the new pages; none if nothing was done.
  std::span<TreePage* const> run(uint64_t slice) {
    if (parent_->header.version().count() < 2) return {};  // nothing to pack with
    // R23: pages are reserved before locks are taken. The last one is the parent's successor.
    if (!worker_.reserve_pages(kMaxPackedPages) || !locks_.lock_parent(link_, parent_)) return {};
    const ChildRanges children(*parent_, parent_->header.version().count());
    if (!find_run(children, slice) || !lock_pages(children)) return {};
    if (!lock_records() || !choose_cuts()) return {};
    reach(SyncPoint::publishing_merge);
    publish();
    return std::span(new_pages_).first(new_count_);
  }

 private:
  /// Finds the run [first_, last_) of children around the one that holds `slice`. Reads their
  /// headers without locks.
  bool find_run(const ChildRanges& children, uint64_t slice) {
    const uint32_t at = children.position_of(slice);
    uint32_t records = 0;
    const auto joins = [&](uint32_t position) {
      const VolatilePointer word = parent_->children[children[position]].load_acquire();
      if (word.is_null() || word.is_frozen() || last_ - first_ == kMaxPackedPages) return false;
      const PageVersion version = worker_.view().resolve(word)->version();
      if (version.is_moved() || records + version.count() > RunLocks::kMaxRecords) return false;
      records += version.count();
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

  /// Locks the pages. Returns false if packing them would free none.
  bool lock_pages(const ChildRanges& children) {
    uint32_t bytes = 0;
    uint32_t records = 0;
    for (uint32_t i = first_; i < last_; ++i) {
      const BorderPage* page = locks_.lock_child(parent_->children[children[i]]);
      if (page == nullptr) return false;
      DCHECK(page->header.storage_id == storage_.id && page->header.layer == 0);
      const uint32_t count = page->header.version().count();
      records += count;
      bytes += static_cast<uint32_t>(kPageBytes) - page->heap_begin + count * kSlotBytes;
    }
    const uint32_t for_bytes = (bytes + kPackedBytes - 1) / kPackedBytes;
    const uint32_t for_slots = (records + kMaxPackedSlots - 1) / kMaxPackedSlots;
    new_count_ = std::max({1u, for_bytes, for_slots});
    return new_count_ < last_ - first_;
  }

  /// Locks all records, and collects them in key order. Pages that lead to a next layer are rare,
  /// because only keys with equal hashes make one, and are not packed.
  bool lock_records() {
    for (TreePage* tree : locks_.pages()) {
      BorderPage* page = border_page(tree);
      const PageVersion version = page->header.version();
      const uint32_t first = size_;
      for (uint32_t slot = 0; slot < version.count(); ++slot) {
        TreeRecord* record = page->record(slot);
        if (!fault::pack_without_record_locks && !locks_.lock_record(record)) return false;
        const Vid vid = record->head.load_acquire();
        if (vid.is_next_layer() || size_ == records_.size()) return false;
        // The record is locked, so no worker writes it.
        DCHECK(!vid.is_moved() && page->contains(page->slices()[slot]));
        records_[size_++] = {page->slices()[slot], record};
      }
      if (!version.is_ascending()) {
        std::sort(records_.begin() + first, records_.begin() + size_, precedes);
      }
    }
    DCHECK(size_ <= records_.size());
    ends_[0] = 0;
    for (uint32_t i = 0; i < size_; ++i) {
      ends_[i + 1] = ends_[i] + copied_bytes(records_[i].record, 0) + kSlotBytes;
    }
    return size_ >= new_count_;
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

  /// Divides the records into pages of about equal size. Among the cuts near the even one, prefers
  /// the fence with the most zero bits at its end, because entries of the directory begin there.
  bool choose_cuts() {
    constexpr uint32_t kTolerance = 2;  // records
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

  void publish() {
    const std::span<TreePage* const> old_pages = locks_.pages();
    const TreePage& front = *old_pages.front();
    const TreePage& back = *old_pages.back();
    DCHECK(front.low < back.high || back.high_is_end != 0);
    SliceRange range{front.low, 0, false};
    for (uint32_t i = 0; i < new_count_; ++i) {
      const bool is_last = i + 1 == new_count_;
      range.high = is_last ? back.high : fence_before(cuts_[i + 1]);
      range.high_is_end = is_last && back.high_is_end != 0;
      new_pages_[i] = new_border_with(
          worker_, {tree_of(front), front.header.layer, range},
          std::span(records_).subspan(cuts_[i], cuts_[i + 1] - cuts_[i]), locks_.max_removed_vid());
      range.low = range.high;
    }
    RunReplacement replacement(worker_, link_, parent_, first_, last_,
                               std::span(new_pages_).first(new_count_), locks_.max_removed_vid());
    // R7: first all VIDs, then the page words, then the twins.
    locks_.mark_records_moved();
    // An old page may have records in more than two new pages, so its twins lead to their parent.
    replacement.publish(old_pages, [&](const TreePage*) -> TreePage* {
      return fault::packed_pages_lead_to_first ? new_pages_[0] : replacement.successor();
    });
    worker_.metrics().merges.add();
  }

  WorkerContext& worker_;
  StorageControl& storage_;
  const Link& link_;
  InteriorPage* parent_;
  uint32_t first_ = 0;
  uint32_t last_ = 0;
  uint32_t new_count_ = 0;
  uint32_t size_ = 0;
  std::array<SlotSource, RunLocks::kMaxRecords> records_;
  std::array<uint32_t, RunLocks::kMaxRecords + 1> ends_;  // bytes of the records before each one
  std::array<uint32_t, kMaxPackedPages + 1> cuts_;        // first record of each new page
  std::array<TreePage*, kMaxPackedPages> new_pages_;
  RunLocks locks_;
};

/// Replaced pages are free only after their grace (R9), which a long transaction extends. So packs
/// stop while this worker waits for many pages, compared with the free ones.
bool may_retire_more(WorkerContext& worker) {
  constexpr uint64_t kFreeForEachRetired = 4;
  const uint64_t retired = worker.pages().retired_count();
  // Loads the pool's count only, because to collect remote frees takes the lock of the pool.
  return retired == 0 || retired * kFreeForEachRetired <= worker.pages().free_estimate();
}

}  // namespace

bool pack_around(WorkerContext& worker, StorageControl& storage, uint64_t slice) {
  if (!may_retire_more(worker)) return false;
  const Link root = root_link(storage);
  // Adopts the successors of the page that was divided.
  find_border(worker, storage, root, slice, Adoption::whole_way);
  TreePath path;
  if (!find_path(worker, root, slice, path) || path.border == nullptr || path.size == 0) {
    return false;
  }
  const TreePath::Step& step = path.steps[path.size - 1];
  DCHECK(path.border->contains(slice));
  std::array<TreePage*, kMaxPackedPages> pages;
  size_t count = 0;
  {
    Pack pack(worker, storage, step.link, step.page);
    const std::span<TreePage* const> packed = pack.run(slice);
    count = packed.size();
    std::ranges::copy(packed, pages.begin());
  }
  PageDirectory* const directory = worker.directory();
  for (size_t i = 0; i < count && directory != nullptr; ++i) {
    directory->remember_all(worker.view(), storage.id, pages[i]);
  }
  return count != 0;
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
